//! `policy explain` and `policy replay`: what a policy decides and why. Runs no tool and opens no data.

mod explain;
mod replay;
mod why;

use std::sync::Arc;

use tool_runtime::call::Decision;

use crate::args::Policy;
use crate::exit::{Exit, Failure};
use crate::session::Cli;

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
