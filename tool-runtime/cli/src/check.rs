//! `check`: reports every problem of the catalog and the policy, and every change since the lock was written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tool_runtime::catalog::{LockReport, ToolLock};
use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};

use crate::catalog::scope_words;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{input, replace, terminal};

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Compare the definitions with a lock, a file such as `tools.lock`, and fail if they differ
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
    /// Update the lock; changes that break callers or need a review are refused
    #[arg(long, requires = "lock")]
    pub(crate) write: bool,
    /// Write changes of this kind too
    #[arg(long, requires = "write", value_enum, value_delimiter = ',', value_name = "CHANGES")]
    pub(crate) accept: Vec<Accept>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accept {
    /// Changes that break callers
    Major,
    /// Changes that are marked for a review
    Review,
}

/// The result of a check with a lock, as `--json` prints it.
#[derive(Serialize)]
struct Checked<'a> {
    problems: Vec<&'a str>,
    lock: Option<&'a LockReport>,
    written: bool,
}

pub(super) fn check(cli: &Cli<'_>, check: &Check) -> Result<Exit, Failure> {
    if let Some(path) = &cli.settings.policy {
        read(path)?;
    }
    let (mut problems, mut unready) = (Vec::new(), BTreeMap::new());
    let catalog = match cli.catalog() {
        Ok(catalog) => {
            match cli.checked_policy(&catalog) {
                Ok(policy) => {
                    unready = catalog.all_unready(&policy);
                    let warnings = ToolRunner::builder(Arc::clone(&catalog), policy).warnings();
                    warnings.iter().for_each(|warning| terminal::note(&terminal::safe(&warning.to_string())));
                }
                Err(failure) => problems.push(failure.message),
            }
            // A policy that denies everything needs no adapters.
            let runner = ToolRunner::builder(Arc::clone(&catalog), ToolPolicy::deny_all()).build();
            let warmed = runner
                .map_err(|error| error.to_string())
                .and_then(|runner| runner.warm().map_err(|error| error.to_string()));
            problems.extend(warmed.err());
            Some(catalog)
        }
        Err(failure) => {
            problems.push(failure.message);
            problems.extend(cli.policy().err().map(|failure| failure.message));
            None
        }
    };
    if let Some(catalog) = &catalog {
        let notes = shared_keys(catalog).into_iter().chain(preconditions(catalog));
        notes.for_each(|note| terminal::note(&terminal::safe(&note)));
    }
    // A lock contains only the application's own definitions, so a problem of a server does not prevent writing it.
    let has_mistakes = !problems.is_empty();
    problems.extend(unready.iter().map(|(tool, why)| format!("`{tool}` is allowed but cannot run: {why}")));
    let problems: Vec<_> = problems.iter().flat_map(|problem| problem.lines()).collect();
    if let Some(path) = &check.lock {
        let report = catalog.as_ref().map(|catalog| compare(path, catalog, check.write)).transpose()?;
        let refused = report.as_ref().is_some_and(|report| is_refused(report, &check.accept));
        let writes = check.write && !has_mistakes && !refused;
        if let (true, Some(catalog)) = (writes, &catalog) {
            replace::whole(path, ToolLock::of(catalog).to_text().as_bytes())?;
        }
        let exit = match &report {
            Some(report) if problems.is_empty() && (writes || report.is_current()) => Exit::Done,
            _ => Exit::Failed,
        };
        if cli.settings.json {
            terminal::line(&json(&Checked { problems, lock: report.as_ref(), written: writes })?);
            return Ok(exit);
        }
        problems.iter().for_each(|problem| terminal::line(&terminal::safe(problem)));
        if let Some(report) = report {
            say(path, &report, check, writes);
        }
        return Ok(exit);
    }
    if cli.settings.json {
        terminal::line(&json(&problems)?);
    } else if problems.is_empty() {
        terminal::line("catalog and policy are in order");
    } else {
        problems.iter().for_each(|problem| terminal::line(&terminal::safe(problem)));
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Fails if the policy file cannot be read at all, which is bad input. Mistakes in its text are findings of the check.
fn read(policy: &Path) -> Result<(), Failure> {
    match ToolPolicy::from_path(policy) {
        Err(error) if matches!(error.code(), "policy_missing" | "policy_unreadable" | "policy_format") => {
            Err(Failure::usage(error.to_string()).code("policy_problem"))
        }
        _ => Ok(()),
    }
}

/// Returns a note about the tools with a precondition. A precondition is code, so neither the definition nor the lock
/// shows it.
fn preconditions(catalog: &ToolCatalog) -> Option<String> {
    let stating = catalog.specs().filter(|spec| catalog.has_precondition(spec.name.as_str()));
    let stating: Vec<_> = stating.map(|spec| format!("`{}`", spec.name)).collect();
    let note = "an approval counts only for the state of the world that was shown";
    match &*stating {
        [] => None,
        [tool] => Some(format!("{tool} has a precondition: {note}")),
        tools => Some(format!("{} have preconditions: {note}", tools.join(" and "))),
    }
}

/// Returns a note for each effect key that several tools have. In one scope, of all calls of these tools with the
/// same values, only the first takes effect. In different scopes, equal keys are different effects.
fn shared_keys(catalog: &ToolCatalog) -> Vec<String> {
    let mut keys: BTreeMap<String, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for spec in catalog.specs() {
        if let Some((key, scope, _)) = spec.once() {
            let tool = format!("`{}`", spec.name.as_str());
            keys.entry(unnamed(key)).or_default().entry(scope).or_default().push(tool);
        }
    }
    let mut notes = Vec::new();
    for (key, scopes) in &keys {
        for (scope, tools) in scopes.iter().filter(|(_, tools)| tools.len() > 1) {
            notes.push(format!(
                "{} have the effect key `{key}` (once {}): of all calls with the same values, only the first takes \
                 effect",
                tools.join(" and "),
                scope_words(scope)
            ));
        }
        if scopes.len() > 1 {
            let each =
                scopes.iter().map(|(scope, tools)| format!("{} (once {})", tools.join(" and "), scope_words(scope)));
            notes.push(format!(
                "the effect key `{key}` has several scopes: {}; calls in one scope do not stop calls in another",
                each.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    notes
}

/// Returns a key without the names of arguments, because tools with different names can share a key.
fn unnamed(key: &str) -> String {
    let (mut shown, mut is_name) = (String::new(), false);
    for letter in key.chars() {
        match letter {
            '{' => is_name = true,
            '}' if is_name => {
                is_name = false;
                shown.push_str("{..}");
            }
            letter if !is_name => shown.push(letter),
            _ => {}
        }
    }
    shown
}

/// Compares the catalog with the lock. With `write`, a missing lock is treated as an empty one.
fn compare(path: &Path, catalog: &ToolCatalog, write: bool) -> Result<LockReport, Failure> {
    let (shown, now) = (path.display().to_string(), ToolLock::of(catalog));
    let is_stdin = path == Path::new("-");
    if write && is_stdin {
        return Err(Failure::usage("`--write` needs the name of a file"));
    }
    if !is_stdin && !path.exists() {
        if write {
            return Ok(ToolLock::default().compare(&now));
        }
        let message = format!("there is no {shown}; `--write` creates it");
        return Err(Failure::usage(message).code("unreadable_input"));
    }
    let text = input::text(input::file(path)?, &shown)?;
    let lock =
        ToolLock::parse(&text).map_err(|error| Failure::usage(format!("{shown}: {error}")).code(error.code()))?;
    Ok(lock.compare(&now))
}

/// Whether the report has changes that need `--accept` and are not in `accepted`.
fn is_refused(report: &LockReport, accepted: &[Accept]) -> bool {
    let has = |accept| accepted.contains(&accept);
    (report.verdict() == "major" && !has(Accept::Major)) || (report.needs_review() && !has(Accept::Review))
}

fn say(path: &Path, report: &LockReport, check: &Check, written: bool) {
    let shown = terminal::safe(&path.display().to_string());
    terminal::part(&terminal::safe_lines(&report.to_string()));
    if !report.is_current() {
        terminal::part("\n");
    }
    let tools = report.tools().len();
    let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    if report.is_current() {
        terminal::line(&format!("{shown} matches the catalog"));
    } else if written {
        terminal::line(&format!("{shown} was written: {tools} changed"));
    } else if is_refused(report, &check.accept) {
        let message = "to write changes that are major or marked review, add `--accept major,review`";
        terminal::line(&format!("{tools} changed since {shown} was written; {message}"));
    } else {
        terminal::line(&format!("{tools} changed since {shown} was written; `--write` updates it"));
    }
}

#[cfg(test)]
mod tests {
    use tool_runtime::{ToolCatalog, ToolError, tool};

    use super::shared_keys;

    /// Pays a refund.
    #[tool(name = "check__refund", effect = external_side_effect, redact = [], once = "refund:{payment}")]
    fn refund(
        /// The payment.
        payment: String,
    ) -> Result<(), ToolError> {
        drop(payment);
        Ok(())
    }

    /// Pays a refund by cheque.
    #[tool(name = "check__cheque", effect = external_side_effect, redact = [], once = "refund:{of}")]
    fn cheque(
        /// The payment.
        of: String,
    ) -> Result<(), ToolError> {
        drop(of);
        Ok(())
    }

    /// Sends a receipt.
    #[tool(name = "check__receipt", effect = external_side_effect, redact = [], once = "receipt:{payment}")]
    fn receipt(
        /// The payment.
        payment: String,
    ) -> Result<(), ToolError> {
        drop(payment);
        Ok(())
    }

    /// Sends a receipt to each person.
    #[tool(
        name = "check__letter",
        effect = external_side_effect,
        redact = [],
        once = "receipt:{of}",
        once_scope = principal,
    )]
    fn letter(
        /// The payment.
        of: String,
    ) -> Result<(), ToolError> {
        drop(of);
        Ok(())
    }

    #[test]
    fn one_key_in_two_scopes_is_named() {
        let catalog = ToolCatalog::builder().tool::<letter>().tool::<receipt>().build();
        let [note] = &shared_keys(&catalog.expect("a catalog"))[..] else { panic!("one key has two scopes") };
        assert_eq!(
            note,
            "the effect key `receipt:{..}` has several scopes: `check__letter` (once for each principal), `check__receipt` \
             (once in a tenant); calls in one scope do not stop calls in another"
        );
    }

    #[test]
    fn tools_that_share_an_effect_key_are_named() {
        let catalog = ToolCatalog::builder().tool::<refund>().tool::<cheque>().tool::<receipt>().build();
        let [note] = &shared_keys(&catalog.expect("a catalog"))[..] else { panic!("one key is shared") };
        assert_eq!(
            note,
            "`check__cheque` and `check__refund` have the effect key `refund:{..}` (once in a tenant): of all calls with \
             the same values, only the first takes effect"
        );
    }
}
