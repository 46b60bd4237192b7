//! [`Declaration`]: the constants that `#[tool]` generates for a tool, without its schemas.

use std::time::Duration;

use schemars::{Schema, SchemaGenerator};

use crate::tool::{Execution, Location, NoSchemaMode, OnceScope};

/// The values of `#[tool(..)]`, of the doc comment and of the attributes of arguments. Arguments have their JSON names.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// `name = ".."`
    pub name: &'static str,
    /// Generates the raw schema of the arguments. `None` with `allow_no_schema`.
    pub input: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// `title = ".."`
    pub title: Option<&'static str>,
    /// `summary = ..`: the sentences, with the JSON names of arguments.
    pub summary: &'static [&'static str],
    /// The doc comment, without the leading space of each line.
    pub description: &'static str,
    /// `redact = [..]`
    pub redact: &'static [&'static str],
    /// `model = [..]`
    pub model: &'static [&'static str],
    /// `prepare = [..]`
    pub prepare: &'static [&'static str],
    /// `tags = [..]`
    pub tags: &'static [&'static str],
    /// `also = [..]`
    pub also: &'static [&'static str],
    /// `timeout = ".."`
    pub timeout: Option<Duration>,
    /// `max_result_bytes = ..`
    pub max_result_bytes: Option<usize>,
    /// `execution = ..`
    pub execution: Execution,
    /// `idempotent`
    pub idempotent: bool,
    /// `once = "..", once_scope = .., once_for = ".."`. The key uses the JSON names of arguments.
    pub once: Option<(&'static str, OnceScope, Option<Duration>)>,
    /// `require_any = [..]`
    pub require_any: &'static [&'static str],
    /// `#[arg(evidence = "..")]`: pairs of an argument and the tool whose results list its valid values.
    pub evidence: &'static [(&'static str, &'static str)],
    /// `#[arg(sensitive)]`
    pub sensitive: &'static [&'static str],
    /// `#[schemars(..)]`: pairs of an argument and a key that constrains it, such as `regex` or `inner.regex`.
    pub constraints: &'static [(&'static str, &'static str)],
    /// `allow_no_schema, no_schema_mode = ..`
    pub no_schema: Option<NoSchemaMode>,
    /// The position of the item in the source code.
    pub location: Location,
}

impl Declaration {
    /// The defaults. A macro expansion overwrites the fields that its attribute sets.
    pub const SILENT: Self = Self {
        name: "",
        input: None,
        title: None,
        summary: &[],
        description: "",
        redact: &[],
        model: &[],
        prepare: &[],
        tags: &[],
        also: &[],
        timeout: None,
        max_result_bytes: None,
        execution: Execution::Server,
        idempotent: false,
        once: None,
        require_any: &[],
        evidence: &[],
        sensitive: &[],
        constraints: &[],
        no_schema: None,
        location: Location { krate: "", module: "", file: "", line: 0, column: 0 },
    };
}
