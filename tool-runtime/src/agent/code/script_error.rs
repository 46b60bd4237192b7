//! The reason why a script ended without a result. It contains no text of the script.

use rhai::{Dynamic, EvalAltResult, Position};

use crate::call::Outcome;
use crate::error::ToolError;

/// The reason why a script ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptError {
    pub(super) code: &'static str,
    what: &'static str,
    /// The code of the failed call's outcome, if a call ended the script.
    outcome: Option<&'static str>,
    at: Option<(usize, usize)>,
}

impl ScriptError {
    pub(super) const fn new(code: &'static str, what: &'static str) -> Self {
        Self { code, what, outcome: None, at: None }
    }

    fn at(mut self, position: Position) -> Self {
        self.at = position.line().map(|line| (line, position.position().unwrap_or(0)));
        self
    }

    /// Creates the error of a source that cannot be parsed.
    pub(super) fn syntax(position: Position) -> Self {
        Self::new(
            "script_syntax",
            "The script cannot be read, is nested too deeply, or uses a feature that the language lacks",
        )
        .at(position)
    }

    /// Converts an error of the interpreter.
    pub(super) fn of(error: &EvalAltResult) -> Self {
        let mut inner = error;
        while let EvalAltResult::ErrorInFunctionCall(_, _, cause, _) = inner {
            inner = cause;
        }
        let failure = match inner {
            EvalAltResult::ErrorTooManyOperations(_) => {
                Self::new("script_budget", "The script took too many operations")
            }
            EvalAltResult::ErrorTooManyVariables(_) => Self::new("script_budget", "The script has too many variables"),
            EvalAltResult::ErrorDataTooLarge(..) => {
                Self::new("script_budget", "A value of the script became too large")
            }
            EvalAltResult::ErrorRuntime(thrown, _) => Self::thrown(thrown),
            EvalAltResult::ErrorVariableNotFound(..) => Self::error("The script uses a variable that does not exist"),
            EvalAltResult::ErrorFunctionNotFound(..) => {
                Self::error("The script calls a function that does not exist for these values")
            }
            EvalAltResult::ErrorPropertyNotFound(..)
            | EvalAltResult::ErrorIndexNotFound(..)
            | EvalAltResult::ErrorArrayBounds(..)
            | EvalAltResult::ErrorStringBounds(..) => Self::error("The script reads a missing property or index"),
            EvalAltResult::ErrorMismatchDataType(..) => Self::error("A value of the script has the wrong type"),
            EvalAltResult::ErrorArithmetic(..) => Self::error("A calculation of the script has no result"),
            _ => Self::error("The script failed"),
        };
        failure.at(inner.position())
    }

    const fn error(what: &'static str) -> Self {
        Self::new("script_error", what)
    }

    /// Creates the error of a script that threw a value, or did not catch the failure of a call. Only the code of an
    /// [`Outcome`] is repeated from the thrown value.
    fn thrown(thrown: &Dynamic) -> Self {
        let map = thrown.read_lock::<rhai::Map>();
        let code = map.as_ref().and_then(|map| map.get("errorCode")?.clone().into_string().ok());
        match code.and_then(|code| Outcome::ALL.iter().find(|outcome| outcome.code() == code)) {
            None => Self::error("The script threw a value"),
            Some(outcome) => Self { outcome: Some(outcome.code()), ..Self::error("A call of the script failed") },
        }
    }

    /// Converts the failure for the gate.
    pub(super) fn into_error(self, begun: bool) -> ToolError {
        let Self { code, what, outcome, at } = self;
        let outcome = outcome.map(|outcome| format!(" ({outcome})")).unwrap_or_default();
        let at = at.map(|(line, column)| format!(", at line {line}, column {column}")).unwrap_or_default();
        let done = if begun { " Some of its calls may have taken effect." } else { "" };
        ToolError::code(code).with_safe(format!("{what}{outcome}{at}.{done}"))
    }
}
