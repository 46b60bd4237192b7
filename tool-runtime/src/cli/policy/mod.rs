//! `policy explain` and `policy replay`: what a policy decides and why. Runs no tool and opens no data.

mod explain;
mod replay;
mod why;

use std::sync::Arc;

use crate::call::{Caller, Decision};
use crate::cli::args::Policy;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;

pub(super) fn policy(cli: &Cli<'_>, action: Policy) -> Result<Exit, Failure> {
    match action {
        Policy::Explain(explain) => explain::explain(cli, &explain),
        Policy::Replay(again) => replay::replay(cli, &again),
    }
}

/// A decision as text: the verdict and its rule.
fn told(decision: &Decision) -> String {
    format!("{} ({})", decision.verdict, decision.rule)
}

fn shared(words: &[String]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(word.as_str())).collect()
}

/// `direct` or `graph:NAME`, as a policy names callers.
pub(super) fn caller(text: &str) -> Result<Caller, String> {
    match text.strip_prefix("graph:") {
        Some(name) if !name.is_empty() => {
            Ok(Caller::Graph { run: String::new(), name: name.to_owned(), version: String::new() })
        }
        None if text == "direct" => Ok(Caller::Direct),
        _ => Err("write `direct` or `graph:NAME`".to_owned()),
    }
}
