//! [`Mistakes`]: the mistakes that a model repeats in the arguments of a tool.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::call::Violation;
use crate::tool::Hash;

/// The maximum number of mistakes of one turn that are remembered for a tool.
const MAX_MISTAKES: usize = 64;

/// The number of turns with the same mistake after which the user has to help.
pub(in crate::runner) const LAST: u32 = 3;

/// The mistakes in the arguments of one tool in its two latest failed turns, each with its count of turns.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::runner) struct Mistakes {
    turn: u64,
    now: Vec<(Mistake, u32)>,
    before: Vec<(Mistake, u32)>,
}

/// A digest of a pointer, a keyword and an expectation. The texts are not kept, because a pointer contains names that
/// a model made up and has no length limit.
type Mistake = u32;

impl Mistakes {
    /// Counts the mistakes of a call, and returns the number of consecutive failed turns with the most repeated one.
    /// Several calls of one turn count once. If no turn was announced, `turn` is 0, and each call is a turn of its own.
    pub(in crate::runner) fn count(&mut self, turn: u64, mistakes: impl Iterator<Item = Mistake>) -> u32 {
        if turn == 0 || self.turn != turn {
            self.turn = turn;
            self.before = std::mem::take(&mut self.now);
        }
        let before: HashMap<_, _> = self.before.iter().copied().collect();
        let mut most = 0;
        for mistake in mistakes.take(MAX_MISTAKES) {
            let times = before.get(&mistake).copied().unwrap_or_default().saturating_add(1);
            most = most.max(times);
            if self.now.len() < MAX_MISTAKES && !self.now.iter().any(|(known, _)| *known == mistake) {
                self.now.push((mistake, times));
            }
        }
        most
    }
}

/// Identifies a mistake in the arguments of a tool. The digest includes the expectation, because only the expectation
/// distinguishes two missing arguments, or two rules of the author's own validation.
pub(in crate::runner) fn mistake(pointer: &str, keyword: &str, expected: &str) -> Mistake {
    let Hash([first, second, third, fourth, ..]) = Hash::sha256(format!("{keyword} {pointer}\n{expected}"));
    u32::from_be_bytes([first, second, third, fourth])
}

/// Returns the request for clarification to the user. It names the tool that the model cannot call and the expected
/// form of its arguments.
pub(in crate::runner) fn clarification(tool: &str, violations: &[Violation]) -> String {
    let mut wrong = String::new();
    for violation in violations.iter().take(5) {
        let place = match &*violation.pointer {
            "" => String::new(),
            pointer => format!(" at `{pointer}`"),
        };
        wrong.extend(["\n- expected", &place, ": ", &violation.expected]);
    }
    let wrong = if wrong.is_empty() { ".".to_owned() } else { format!(":{wrong}") };
    format!(
        "I could not call `{tool}`, because its arguments were wrong three times{wrong}\nPlease tell me what to use."
    )
}
