//! Looks up the names of argument values for the approver when a call begins to wait, and again before an approved call
//! begins. Look-ups delay the call by two seconds at most each time. A failed look-up refuses neither the call nor its
//! approval.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::call::{Bounds, CallId, Ends, Names};
use crate::capability::{NameLookup, NameRequest};
use crate::catalog::ToolCatalog;
use crate::json::{self, Limits, Tree};
use crate::runner::Run;
use crate::runner::gate::invoke;
use crate::runner::report::contained::Contained;
use crate::runner::report::failure::Failure;
use crate::runner::shared::Lookups;
use crate::schema;
use crate::text::{nearest, pointer};
use crate::tool::ToolSpec;

/// The maximum number of values of one call that are looked up.
const MAX_LOOKUPS: usize = 8;

/// The time limit for all look-ups of one call together.
const DEADLINE: Duration = Duration::from_secs(2);

/// Returns the problems of the registered look-ups: a tool or an argument that does not exist, or a sensitive argument.
pub(in crate::runner) fn problems<L>(lookups: &Lookups<L>, catalog: &ToolCatalog) -> Vec<String> {
    let problem = |(tool, argument): &(Arc<str>, Arc<str>)| {
        let bound = format!("names of `{}` are bound to `{}`", argument.escape_debug(), tool.escape_debug());
        let Some(spec) = catalog.get(tool) else {
            let suggestion = nearest(tool, catalog.specs().map(|spec| spec.name.as_str()));
            let suggestion = suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
            return Some(format!("{bound}, a tool that does not exist{suggestion}"));
        };
        let known = schema::names_at(&spec.input_schema, &[]);
        if spec.no_schema.is_none() && !known.contains(&**argument) {
            let suggestion = nearest(argument, known.iter().map(String::as_str));
            let suggestion = suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
            return Some(format!("{bound}, which has no such argument{suggestion}"));
        }
        let hidden = spec.sensitive.iter().any(|one| **one == **argument);
        hidden.then(|| format!("{bound}, where the argument is sensitive; a name would reveal its value"))
    };
    lookups.keys().filter_map(problem).collect()
}

/// A value of an argument whose name is looked up.
pub(in crate::runner) struct Unnamed {
    argument: Arc<str>,
    pointer: String,
    value: String,
}

/// Returns the argument values of a call for which a look-up is registered. `arguments` is the JSON text of the
/// effective arguments.
pub(in crate::runner) fn unnamed(run: &Run, spec: &ToolSpec, arguments: &str) -> Vec<Unnamed> {
    let mine = run.shared().names.keys().filter(|(tool, _)| **tool == *spec.name.as_str()).map(|(_, name)| name);
    let mut mine = mine.peekable();
    if mine.peek().is_none() {
        return Vec::new();
    }
    let arguments = json::parse(arguments, &Limits::UNBOUNDED).unwrap_or(Tree::Null);
    let mut found = Vec::new();
    for argument in mine {
        let place = pointer::segment(argument);
        let mut add = |pointer, value: &Tree<'_>| {
            let value = match value {
                Tree::String(text) => text.to_string(),
                Tree::Int(number) => number.to_string(),
                Tree::UInt(number) => number.to_string(),
                _ => return,
            };
            found.push(Unnamed { argument: Arc::clone(argument), pointer, value });
        };
        match arguments.get(argument) {
            Some(Tree::Array(items)) => {
                items.iter().take(MAX_LOOKUPS).enumerate().for_each(|(at, item)| add(format!("{place}/{at}"), item));
            }
            Some(value) => add(place, value),
            None => {}
        }
    }
    found.truncate(MAX_LOOKUPS);
    found
}

/// Looks up the names concurrently, for the run's principal and tenant. A failed look-up is reported to operators, and
/// the approver sees that the name is not available.
pub(in crate::runner) async fn look_up(run: &Run, call: &CallId, tool: &str, unnamed: Vec<Unnamed>) -> Names {
    type LookedUpName = (String, Result<Option<String>, ()>);
    type Named<'a> = Pin<Box<dyn Future<Output = LookedUpName> + Send + 'a>>;
    if unnamed.is_empty() {
        return Names::default();
    }
    let digests = run.digests().await;
    let mut waiting: Vec<Named<'_>> = Vec::new();
    for one in unnamed {
        waiting.push(Box::pin(async move {
            let found = ask(run, tool, &one).await.map_err(|text| {
                let failure = run.failure("name_unavailable", &text);
                let failure = Failure { tool: Some(tool), call_id: Some(call), ..failure };
                run.report_failure(format_args!("the name of an argument could not be looked up"), &failure);
            });
            (one.pointer, found)
        }));
    }
    let mut named: Vec<Option<LookedUpName>> = waiting.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, named) in waiting.iter_mut().zip(&mut named).filter(|(_, named)| named.is_none()) {
            if let Poll::Ready(found) = future.as_mut().poll(cx) {
                *named = Some(found);
            }
        }
        if named.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let mut names = Names::default();
    for (pointer, found) in named.into_iter().flatten() {
        names.add(pointer, found, |hash| digests.of(hash));
    }
    names
}

/// Runs one look-up. `Ok(None)` if there is no name. `Err` is the reason for a failure, for operators.
async fn ask(run: &Run, tool: &str, one: &Unnamed) -> Result<Option<String>, String> {
    let (shared, options) = (run.shared(), run.options());
    let Some(lookup) = shared.names.get(&(Arc::from(tool), Arc::clone(&one.argument))) else { return Ok(None) };
    let (principal, tenant) = (options.principal.as_deref(), options.tenant.as_deref());
    let request = NameRequest { tool, argument: &one.argument, value: &one.value, principal, tenant };
    let ends = Ends::default();
    let bounds = Bounds::new(Some(DEADLINE), &options.cancellation, &ends);
    match invoke::contained(Box::pin(lookup.name(&request)), bounds).await {
        Ok(found) => found.map_err(|error| error.detail()),
        Err(interrupted) => Err(interrupted.to_string()),
    }
}

impl Contained<dyn NameLookup> {
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, crate::error::ToolError> {
        let panicked = || Err(crate::error::ToolError::safe("the look-up panicked"));
        self.wait("name look-up", |lookup| lookup.name(request)).await.unwrap_or_else(panicked)
    }
}
