//! Reads a command's input (arguments, files, standard input) up to a limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tool_runtime::call::DigestKey;
use tool_runtime::tool::Hash;

use crate::exit::{Exit, Failure};

/// The maximum number of bytes that are read from a file or standard input.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a whole file of at most 64 MiB; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is larger.
pub fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    file_within(path, MAX_BYTES)
}

/// Reads a whole file of at most `limit` bytes; `-` is standard input.
pub(super) fn file_within(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return bounded(std::io::stdin().lock(), "standard input", limit);
    }
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!("{shown} is a folder; name a file")).code("unreadable_input"));
    }
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("cannot open {shown}: {error}")).code("unreadable_input"))?;
    bounded(file, &shown.to_string(), limit)
}

/// Reads standard input to its end, at most 64 MiB.
///
/// # Errors
/// Standard input cannot be read, or is larger.
pub fn stdin() -> Result<Vec<u8>, Failure> {
    bounded(std::io::stdin().lock(), "standard input", MAX_BYTES)
}

fn bounded(reader: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")).code("unreadable_input"))?;
    if bytes.len() as u64 > limit {
        let limit = limit / 1024 / 1024;
        return Err(Failure::usage(format!("{name} is larger than {limit} MiB")).code("unreadable_input"));
    }
    Ok(bytes)
}

/// Returns bytes as UTF-8 text. The error message calls them `name`.
///
/// # Errors
/// The bytes are not UTF-8 text.
pub fn text(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::usage(format!("{name} is not UTF-8 text (byte {place})")).code("unreadable_input")
    })
}

/// Returns the JSON text that an argument of the command line stands for: `-` is standard input, `@FILE` is the content
/// of a file, and any other argument is the text itself. The text is not checked.
///
/// # Errors
/// Standard input or the file cannot be read.
pub fn json_text(given: &str) -> Result<String, Failure> {
    match given.strip_prefix('@') {
        _ if given == "-" => text(stdin()?, "standard input"),
        Some(path) => text(file(Path::new(path))?, path),
        None => Ok(given.to_owned()),
    }
}

/// Returns the JSON text like [`json_text`], and checks its syntax, so that a typing error is reported before any
/// effect.
///
/// # Errors
/// The input cannot be read, or is not JSON.
pub fn json_value(given: &str) -> Result<String, Failure> {
    let text = json_text(given)?;
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => Ok(text),
        // The error's text may quote a private value, so the message has only the position.
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let message = format!("this is not JSON (line {line}, column {column}); nothing was decided");
            Err(Failure { exit: Exit::Invalid, code: "invalid_json", message })
        }
    }
}

/// Returns a library's message without its quotations, which can be private values.
pub(super) fn unquoted(message: &str) -> String {
    message.split('"').step_by(2).collect::<Vec<_>>().join("..")
}

/// Parses a key for digests from 64 hexadecimal digits.
pub(crate) fn digest_key(text: &str) -> Option<DigestKey> {
    // `Hash` parses the same notation.
    let bytes: Hash = text.trim().parse().ok()?;
    bytes.as_ref().first_chunk().copied().map(DigestKey::new)
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn messages_lose_what_they_quote() {
        assert_eq!(unquoted("no `store`"), "no `store`");
        assert_eq!(unquoted("unknown value \"x\" for `y`: \"x\""), "unknown value .. for `y`: ..");
        assert_eq!(unquoted("cut \"x"), "cut ");
    }
}
