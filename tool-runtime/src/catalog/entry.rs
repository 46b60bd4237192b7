//! [`Entry`]: the definition of a tool, and the parts that a runner needs to run it.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::capability::Requirement;
use crate::catalog::CatalogProblemKind;
use crate::catalog::problem::Problems;
use crate::error::Problem;
use crate::json::{self, Limits, Tree};
use crate::policy::{PolicyResource, ToolLimits};
use crate::redact::{ERROR, MEDIA, Projector};
use crate::registration::{Behaviour, Checked, Described, GraphDeclaration, Published};
use crate::schema::{self, Effective, IdArguments, Presence};
use crate::text::nearest;
use crate::tool::sentence::{Piece, pieces};
use crate::tool::{Execution, Location, Schema, ToolEffect, ToolSpec};

/// One tool of a catalog.
pub(crate) struct Entry {
    /// The definition.
    pub spec: Arc<ToolSpec>,
    /// The place of the definition in the source; `None` for dynamic tools.
    pub location: Option<Location>,
    /// The position among the tools that the catalog was built with, or among the tools of its server. The tables that
    /// a runner compiles use it as their index.
    pub(crate) index: usize,
    /// The position of the tool's server in the catalog; `None` for a tool that the catalog was built with.
    pub(crate) deferred: Option<usize>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_bytes: Option<usize>,
    pub(crate) identifiers: IdArguments,
    pub(crate) effective: Effective,
    pub(crate) behaviour: Arc<dyn Behaviour>,
    /// The definition that the server publishes now; `None` for a tool that no server can change.
    pub(crate) published: Option<Arc<dyn Published>>,
    /// The capabilities of the tool. None of them has a stronger effect than the tool declares.
    pub(crate) requirements: Vec<Requirement>,
    /// The projector, which writes the output (or a client tool's payload) through the allowlist. `None` without an
    /// allowlist.
    pub(crate) projector: Option<Arc<Projector>>,
    /// The schema of the value that `projector` writes; `None` for a dynamic tool without an output schema.
    pub(crate) payload: Option<Schema>,
    /// The checks of the client's result; `None` for a tool that no client executes.
    pub(crate) answer: Option<Box<Answer>>,
    /// The declaration of a graph (an agent or a script that runs as a tool); `None` for every other tool.
    pub(crate) graph: Option<Box<GraphDeclaration>>,
}

/// The schema and the projector for a client's result.
pub(crate) struct Answer {
    pub(crate) schema: Schema,
    pub(crate) projector: Arc<Projector>,
}

impl Entry {
    /// Returns the schema of the value that an allowlist applies to: the client's result, or else the tool's output.
    pub(crate) fn shown(&self) -> Option<&Schema> {
        self.answer.as_ref().map(|answer| &answer.schema).or(self.payload.as_ref())
    }

    /// Checks the declaration of a tool and creates its entry. Every tool of a catalog comes from here.
    pub(super) fn new(described: Described, problems: &mut Vec<Problem>) -> Option<Self> {
        let before = problems.len();
        let mut found = Problems {
            tool: described.written.escape_debug().to_string(),
            location: described.location,
            found: problems,
        };
        let spec = match described.spec() {
            Ok(spec) => Arc::new(spec),
            Err(error) => {
                found.definition(&error);
                return None;
            }
        };
        found.said_about_arguments(&spec);
        found.sentences(&spec);
        found.once(&spec);
        if spec.description.trim().is_empty() {
            found.add(CatalogProblemKind::Description, "the description is empty; write what the tool is for");
        }
        if spec.name.is_discovered() && spec.execution == Execution::Client {
            found.add(CatalogProblemKind::Execution, "its server executes it, not the client; remove `client(..)`");
        }
        let is_client = spec.execution == Execution::Client;
        let names_media = spec.redaction.allow.iter().chain(&spec.redaction.model).any(|path| path == MEDIA);
        if is_client && described.has_media == Some(true) {
            found.add(
                CatalogProblemKind::Execution,
                "the client executes it, so it returns no files; return the value alone",
            );
        } else if names_media && (is_client || described.has_media == Some(false)) {
            let message = "`$media` names files, but the tool returns none; return `WithMedia` or remove the path";
            found.add(CatalogProblemKind::Redaction, message);
        }
        if !spec.name.is_discovered() && spec.redaction.allow.iter().any(|path| path == ERROR) {
            let message =
                "`$error` names a server's error text; write `ToolError::safe(..)` for a text that a model may read";
            found.add(CatalogProblemKind::Redaction, message);
        }
        for beyond in described.requirements.iter().filter(|requirement| requirement.effect > spec.effect) {
            // For a tool of the macro, the compiler has already refused this.
            let message = format!(
                "it is declared `{}`, but `{}` reaches `{}`; declare the stronger effect",
                spec.effect, beyond.name, beyond.effect
            );
            found.add(CatalogProblemKind::Effect, &message);
        }
        let payload = described.output.and_then(Checked::ok);
        let answer = described.answer.and_then(Checked::ok);
        let (value, prepared) = match &answer {
            Some(answer) => (Some(answer), Some(payload.as_ref())),
            None => (payload.as_ref(), None),
        };
        let redaction = &spec.redaction;
        let shown = described.allow.is_some().then(|| {
            found.projector(if is_client { RESULT } else { "`redact`" }, &redaction.allow, &redaction.model, value)
        });
        let prepared = prepared.map(|payload| found.projector("`prepare`", &redaction.prepare, &[], payload));
        if problems.len() > before {
            return None;
        }
        let shown = shown.flatten();
        let (projector, answer) = match (answer, prepared.flatten()) {
            (Some(schema), Some(prepared)) => match shown {
                Some(projector) => (Some(prepared), Some(Box::new(Answer { schema, projector }))),
                // Without an allowlist for the result, the call is refused before the payload is prepared.
                None => (None, None),
            },
            _ => (shown, None),
        };
        // Parsed lazily, for tools that may have ids or defaults: parsing schemas takes much of the time of a build.
        let text = spec.input_schema.as_str();
        let input = LazyCell::new(|| json::parse_value(text, &Limits::UNBOUNDED).unwrap_or(Tree::Bool(true)));
        let identifiers = IdArguments::of(&spec, || &input);
        let effective = Effective::of(&spec.input_schema, || &input);
        drop(input);
        Some(Self {
            location: described.location,
            index: 0,
            deferred: None,
            timeout: described.timeout,
            max_result_bytes: described.max_result_bytes,
            identifiers,
            effective,
            behaviour: described.behaviour,
            published: described.published,
            requirements: described.requirements,
            projector,
            payload,
            answer,
            graph: described.graph.map(Box::new),
            spec,
        })
    }

    /// Returns the maximum size of a result in bytes: the lower of the tool's own limit and the policy's. It applies to
    /// an output, a client's result and a value that a person gives in the tool's place.
    pub(crate) fn result_bytes(&self, limits: &ToolLimits) -> usize {
        let limit = limits.result_bytes;
        self.max_result_bytes.map_or(limit, |own| own.min(limit))
    }

    /// Whether the tool's server publishes another definition than the catalog has, or none.
    pub(crate) fn is_drifted(&self) -> bool {
        self.published.is_some() && self.policy_resource().pin != self.spec.pin
    }

    /// Returns the tool as policies see it. A definition that its server no longer publishes has no pin (the hash that
    /// a policy names), so no policy allows it.
    pub(crate) fn policy_resource(&self) -> PolicyResource<'_> {
        let mut resource = PolicyResource::of(&self.spec);
        if let Some(server) = &self.published {
            resource.pin = server.pin().filter(|pin| Some(*pin) == resource.pin);
        }
        resource
    }
}

/// The allowlist of a client tool does not apply to the output of its function.
const RESULT: &str = "`redact`, which lists fields of the client's result";

impl Problems<'_> {
    fn projector(
        &mut self,
        key: &str,
        allow: &[String],
        model: &[String],
        schema: Option<&Schema>,
    ) -> Option<Arc<Projector>> {
        // Without a schema, the paths cannot be checked.
        let Some(schema) = schema else { return Some(Arc::new(Projector::without_schema(allow, model))) };
        match Projector::compile(allow, model, &schema.to_value()) {
            Ok(projector) => Some(Arc::new(projector)),
            Err(paths) => {
                paths.iter().for_each(|one| self.add(CatalogProblemKind::Redaction, &format!("{key}: {one}")));
                None
            }
        }
    }

    /// Reports rules for arguments that do not exist, because such rules would protect nothing. Also reports evidence
    /// for arguments whose type cannot have evidence.
    fn said_about_arguments(&mut self, spec: &ToolSpec) {
        let says = !(spec.sensitive.is_empty() && spec.evidence.is_empty() && spec.require_any.is_empty());
        if spec.no_schema.is_some() || !says {
            return;
        }
        let known = schema::names_at(&spec.input_schema, &[]);
        for name in spec.evidence.keys().filter(|name| !schema::can_have_evidence(&spec.input_schema, name)) {
            let message = format!(
                "no result can be evidence for `{}`, because only texts, whole numbers and lists of them are compared; \
                 remove `evidence`, or put the id into an argument of its own",
                name.escape_debug()
            );
            self.add(CatalogProblemKind::Evidence, &message);
        }
        let rules = [
            ("sensitive", spec.sensitive.iter().collect::<Vec<_>>()),
            ("evidence", spec.evidence.keys().collect()),
            ("require_any", spec.require_any.iter().collect()),
        ];
        for (rule, names) in rules {
            for name in names.into_iter().filter(|name| !known.contains(*name)) {
                let suggestion = nearest(name, known.iter().map(String::as_str));
                let suggestion =
                    suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
                let message =
                    format!("`{rule}` names the argument `{}`, which does not exist{suggestion}", name.escape_debug());
                self.add(CatalogProblemKind::Argument, &message);
            }
        }
    }
}

impl Problems<'_> {
    /// Reports sentences that name missing or sensitive arguments.
    fn sentences(&mut self, spec: &ToolSpec) {
        for sentence in &spec.summary {
            let pieces = match pieces(sentence) {
                Ok(pieces) => pieces,
                Err(error) => {
                    self.add(CatalogProblemKind::Summary, &format!("`summary` {error}"));
                    continue;
                }
            };
            for piece in &pieces {
                if let Piece::Argument(path) = piece {
                    self.check_summary_path(spec, path);
                }
            }
        }
    }

    /// Reports a `once` key that does not fit the tool: a key of a tool without effects, a key that is probably meant
    /// to contain an argument, and a key with an argument that is sensitive, unknown or missing in some calls.
    fn once(&mut self, spec: &ToolSpec) {
        let Some(once) = &spec.once else { return };
        if spec.effect == ToolEffect::ReadOnly || spec.execution == Execution::Client {
            let message = "`once` is set, but the tool itself has no effect; remove it, or correct the effect";
            return self.add(CatalogProblemKind::Argument, message);
        }
        let pieces = match pieces(&once.key) {
            Ok(pieces) => pieces,
            Err(error) => return self.add(CatalogProblemKind::Argument, &format!("`once` {error}")),
        };
        if let [Piece::Text(key)] = pieces.as_slice() {
            let words = [key.trim(), key.rsplit(':').next().unwrap_or_default().trim()];
            let known = schema::names_at(&spec.input_schema, &[]);
            if let Some(name) = words.into_iter().find(|word| known.contains(*word)) {
                let message = format!(
                    "`once` is the same for every call, so a call with another `{name}` would get the first result; write \
                     `{{{name}}}` for its value"
                );
                self.add(CatalogProblemKind::Argument, &message);
            }
        }
        for piece in &pieces {
            let path = match piece {
                Piece::Text(_) | Piece::End => continue,
                Piece::Begin => {
                    let message = "`once` has an optional part; write `[[` for the character";
                    self.add(CatalogProblemKind::Argument, message);
                    continue;
                }
                Piece::Argument(path) => path,
            };
            let name = path.join(".").escape_debug().to_string();
            let wrong = if path.first().is_some_and(|first| spec.sensitive.contains(first)) {
                Some(format!("`once` names `{name}`, which is sensitive; records show the key, so leave it out"))
            } else if spec.no_schema.is_some() {
                Some(format!("`once` names the argument `{name}`, but the arguments have no schema"))
            } else {
                match schema::presence(&spec.input_schema, path) {
                    Presence::Always => None,
                    Presence::Optional => Some(format!(
                        "`once` names `{name}`, which a call may leave out or set to `null`; name an argument that \
                         every call has, or write its type without `Option`, with a default if calls may leave it out"
                    )),
                    Presence::Unknown(at, known) => {
                        let meant = suggestion(path, at, &known);
                        Some(format!("`once` names the argument `{name}`, which does not exist{meant}"))
                    }
                }
            };
            wrong.into_iter().for_each(|message| self.add(CatalogProblemKind::Argument, &message));
        }
    }

    fn check_summary_path(&mut self, spec: &ToolSpec, path: &[String]) {
        let name = path.join(".").escape_debug().to_string();
        if path.first().is_some_and(|first| spec.sensitive.contains(first)) {
            let message = format!("`summary` names `{name}`, which is sensitive and would be masked; leave it out");
            return self.add(CatalogProblemKind::Summary, &message);
        }
        if spec.no_schema.is_some() {
            return;
        }
        let unknown = path.iter().enumerate().find_map(|(at, segment)| {
            let known = schema::names_at(&spec.input_schema, path.get(..at)?);
            (!known.contains(segment)).then_some((at, known))
        });
        if let Some((at, known)) = unknown {
            let suggestion = suggestion(path, at, &known);
            let message = format!("`summary` names the argument `{name}`, which does not exist{suggestion}");
            self.add(CatalogProblemKind::Summary, &message);
        }
    }
}

/// Returns the end of a message about the unknown segment `at` of a path: the whole path that the author meant.
fn suggestion(path: &[String], at: usize, known: &BTreeSet<String>) -> String {
    let meant = path.get(at).and_then(|segment| nearest(segment, known.iter().map(String::as_str)));
    let whole = |meant| path.iter().take(at).map(String::as_str).chain([meant]).collect::<Vec<_>>().join(".");
    meant.map(|meant| format!("; did you mean `{}`?", whole(meant))).unwrap_or_default()
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
