//! Asks the person at the keyboard whether a waiting call may run.

use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::PendingCall;
use tool_runtime::{ToolCatalog, ToolPolicy};

use crate::chat::line::{Keyboard, Line};
use crate::describe::describe;
use crate::terminal;

const HELP: &str = "   y           let it run
   n [REASON]  refuse it; the model reads the reason
   e           edit the arguments, then let it run
   a           give the result as JSON in place of the tool
   v           view the values that are masked
   Ctrl-C      decide later: the call stays as it is";

/// Asks until the person decides. Returns `None` if the person presses Ctrl-C or Ctrl-D.
pub(super) async fn ask(
    known: (&ToolCatalog, &ToolPolicy),
    call: &PendingCall,
    keyboard: &mut Keyboard,
) -> Option<ApprovalDecision> {
    let name = terminal::safe(call.tool.as_str());
    describe(known, call, false).iter().for_each(|line| terminal::message(line));
    let question = format!("allow {name}? [y/N], e(dit), a(nswer), v(iew), ?: ");
    loop {
        let Line::Text(answer) = keyboard.line(&question).await else { return None };
        let (word, rest) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
        match word {
            "y" | "Y" | "yes" => return Some(ApprovalDecision::Approve),
            "" | "n" | "N" | "no" => {
                let reason = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
                return Some(ApprovalDecision::Deny(reason));
            }
            "e" | "edit" => {
                let edited = keyboard.edit("arguments: ", call.arguments()).await;
                if let Some(text) = json(edited) {
                    return Some(ApprovalDecision::ApproveEdited(text));
                }
            }
            "a" | "answer" => {
                if let Some(text) = json(keyboard.line("output as JSON: ").await) {
                    return Some(ApprovalDecision::Respond(text));
                }
            }
            "v" | "view" => describe(known, call, true).iter().for_each(|line| terminal::message(line)),
            _ => terminal::message(HELP),
        }
    }
}

/// Checks that a line is JSON. Prints a message and returns `None` if it is not; `None` also if the person cancelled.
fn json(line: Line) -> Option<String> {
    let Line::Text(text) = line else { return None };
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Some(text),
        Err(error) => {
            terminal::message(&format!("this is not JSON (column {}); nothing was decided", error.column()));
            None
        }
    }
}
