//! [`Problem`]: a problem of a definition, a schema, a policy or a runner, with its place and a correction.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::tool::Location;

/// A problem of a tool, a catalog, a policy, a runner or a server, with its place and a correction. The problems that
/// prevent a build are in a [`BuildError`].
///
/// ```
/// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
///
/// let problems = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::allow(["math__add"])).check();
/// assert_eq!((problems[0].code(), problems[0].path()), ("policy_problem", "allowed_tools"));
/// assert!(problems[0].to_string().starts_with("policy, `allowed_tools`: there is no tool `math__add`"));
/// # Ok::<(), tool_runtime::error::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    code: &'static str,
    message: String,
    /// Boxed, because a problem is the error of many functions and should be small.
    rest: Box<Rest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    place: ProblemPlace,
    remedy: Option<String>,
    nearest: Option<String>,
    tools: Vec<String>,
    kind: SchemaProblemKind,
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProblemPlace {
    /// In a schema: of the arguments, of the output, or without a tool.
    Schema { of: Option<&'static str>, pointer: String },
    /// In a policy that was read.
    Policy(String),
    /// In the text of a policy that cannot be read.
    Text { file: Option<PathBuf>, position: Option<(usize, usize)> },
    /// In the sources of tools.
    Sources(Vec<Location>),
}

/// The kind of a problem of a schema, for the review of an untrusted definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SchemaProblemKind {
    /// The content of the schema is wrong.
    #[default]
    Content,
    /// The schema is too large.
    Size,
    /// The schema nests too deeply, or expands too far.
    Depth,
    /// A reference leads outside of the document or in a circle.
    Reference,
}

impl Problem {
    /// Creates the problem of a schema that a [`Validator`](crate::schema::validator::Validator) cannot compile.
    /// `pointer` is a JSON Pointer (RFC 6901) into the schema.
    #[must_use]
    pub fn schema(pointer: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let mut problem = Self::new("schema", ProblemPlace::Schema { of: None, pointer: pointer.into() }, message);
        problem.rest.remedy = Some(remedy.into());
        problem
    }

    /// Creates a problem of a policy that was read.
    pub(crate) fn policy(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("policy_problem", ProblemPlace::Policy(path.into()), message)
    }

    /// Creates a problem of a policy that cannot be read.
    pub(crate) fn unread(code: &'static str, position: Option<(usize, usize)>, message: String) -> Self {
        Self::new(code, ProblemPlace::Text { file: None, position }, message)
    }

    /// Creates a problem of a tool, a catalog or a runner, with the places of the tools in their sources.
    pub(crate) fn of(
        code: &'static str,
        message: impl Into<String>,
        locations: impl IntoIterator<Item = Location>,
    ) -> Self {
        Self::new(code, ProblemPlace::Sources(locations.into_iter().collect()), message)
    }

    fn new(code: &'static str, place: ProblemPlace, message: impl Into<String>) -> Self {
        let (remedy, nearest, tools, kind) = (None, None, Vec::new(), SchemaProblemKind::default());
        Self { code, message: message.into(), rest: Box::new(Rest { place, remedy, nearest, tools, kind }) }
    }

    pub(crate) fn of_kind(mut self, kind: SchemaProblemKind) -> Self {
        self.rest.kind = kind;
        self
    }

    pub(crate) fn with_nearest(mut self, nearest: Option<String>) -> Self {
        self.rest.nearest = nearest;
        self
    }

    pub(crate) fn with_tools(mut self, tools: impl IntoIterator<Item = String>) -> Self {
        self.rest.tools.extend(tools);
        self
    }

    /// Adds the name of the schema that has the problem: `arguments` or `output`.
    pub(crate) fn in_schema_of(mut self, schema: &'static str) -> Self {
        if let ProblemPlace::Schema { of, .. } = &mut self.rest.place {
            *of = Some(schema);
        }
        self
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        if let ProblemPlace::Text { file, .. } = &mut self.rest.place {
            *file = Some(path.to_owned());
        }
        self
    }

    pub(crate) fn kind(&self) -> SchemaProblemKind {
        self.rest.kind
    }

    /// Returns the stable word for the kind of the problem:
    ///
    /// - tools and catalogs: `empty`, `name`, `collision`, `schema`, `redaction`, `effect`, `description`, `argument`,
    ///   `summary`, `evidence`, `execution` or `graph`
    /// - policies: `policy_problem`, `policy_missing`, `policy_unreadable`, `policy_format`, `policy_not_utf8`,
    ///   `policy_syntax`, `policy_unknown_key`, `policy_wrong_type` or `policy_value`
    /// - runners: `capability_unbound`, `names_invalid` or `approvals_undecided`
    /// - tools that a policy allows but that cannot run: `not_pinned`, `drifted`, `no_allowlist`, `rules`, `kept_out`,
    ///   `unlisted` or `server_down`
    /// - rejected tools of a server: `malformed`, `too_large`, `illegal_name`, `duplicate_name`, `colliding_name`,
    ///   `input_schema`, `output_schema`, `unsupported_execution` or `illegal_header`
    /// - MCP servers: `mcp_tool_unknown`, `mcp_name`, `mcp_name_taken`, `mcp_client_tool`, `mcp_header`, `mcp_listen`,
    ///   `mcp_resource`, `mcp_scope`, `mcp_unreachable` or `mcp_handshake`
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the place: a JSON Pointer (RFC 6901) into a schema, as if its references were inlined, or a key of a
    /// policy, such as `budgets.tools.core__add`. Empty for the root of a schema, and for every other place.
    #[must_use]
    pub fn path(&self) -> &str {
        match &self.rest.place {
            ProblemPlace::Schema { pointer, .. } => pointer,
            ProblemPlace::Policy(path) => path,
            ProblemPlace::Text { .. } | ProblemPlace::Sources(_) => "",
        }
    }

    /// Returns the line and the column, both from 1, in a policy that cannot be read. `None` for every other problem,
    /// and for an unknown position.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        match &self.rest.place {
            ProblemPlace::Text { position, .. } => *position,
            _ => None,
        }
    }

    /// Returns the places of the tools in their sources, as `file:line:column`: both places of a collision, and none
    /// for tools that were made at run time.
    #[must_use]
    pub fn locations(&self) -> impl ExactSizeIterator<Item = String> {
        let locations: &[Location] = match &self.rest.place {
            ProblemPlace::Sources(locations) => locations,
            _ => &[],
        };
        locations.iter().map(ToString::to_string)
    }

    /// Returns the message without the place. It contains the correction, unless there is a
    /// [`remedy`](Self::remedy).
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the correction of a problem of a schema; `None` for every other problem.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.rest.remedy.as_deref()
    }

    /// Returns the nearest name that exists, for an unknown name in a policy; `None` if no name is near.
    #[must_use]
    pub fn nearest(&self) -> Option<&str> {
        self.rest.nearest.as_deref()
    }

    /// Returns the tools that need an unbound capability.
    #[must_use]
    pub fn tools(&self) -> &[String] {
        &self.rest.tools
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rest.place {
            ProblemPlace::Schema { of, pointer } => {
                if let Some(of) = of {
                    write!(f, "{of}: ")?;
                }
                write!(f, "at {}: ", if pointer.is_empty() { "the root" } else { pointer })?;
            }
            ProblemPlace::Policy(path) => write!(f, "policy, `{path}`: ")?,
            ProblemPlace::Text { file: Some(file), position: Some((line, column)) } => {
                write!(f, "{}:{line}:{column}: ", file.display())?;
            }
            ProblemPlace::Text { file: Some(file), position: None } => write!(f, "{}: ", file.display())?,
            ProblemPlace::Text { file: None, position: Some((line, column)) } => {
                write!(f, "policy, line {line}, column {column}: ")?;
            }
            ProblemPlace::Text { file: None, position: None } => f.write_str("policy: ")?,
            ProblemPlace::Sources(_) => {}
        }
        f.write_str(&self.message)?;
        if let Some(remedy) = &self.rest.remedy {
            write!(f, "; {remedy}")?;
        }
        if let Some(nearest) = &self.rest.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        self.locations().try_for_each(|location| write!(f, "\n  at {location}"))
    }
}

impl Error for Problem {}

/// The error of a definition, a catalog, a policy, a runner or a server that cannot be built, or of a server that
/// cannot serve. It has all problems together; in its message, each begins a line.
///
/// ```
/// use tool_runtime::ToolPolicy;
///
/// let error = ToolPolicy::from_toml("allowed = []").unwrap_err();
/// assert_eq!(error.code(), "policy_unknown_key");
/// assert_eq!(error.problems()[0].position(), Some((1, 1)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(Vec<Problem>);

impl BuildError {
    /// Creates the error from at least one problem.
    pub(crate) const fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    /// Returns the problems. Problems of a catalog are in the order of the tools' names. Problems of a runner are
    /// ordered by kind, the most severe first.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// Returns the [code](Problem::code) of the first problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.first().map_or("catalog", Problem::code)
    }

    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self(self.0.into_iter().map(|problem| problem.in_file(path)).collect())
    }
}

impl From<Problem> for BuildError {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

// `source` returns `None`, because `problems` returns the causes.
impl Error for BuildError {}
