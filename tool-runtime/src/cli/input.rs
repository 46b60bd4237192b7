//! Reading what a person gives: arguments, files, standard input. Bounded, and errors say what to do.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::cli::exit::Failure;

/// The largest file or standard input that is read whole, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A whole file, as bytes.
pub(super) fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| Failure::usage(format!("cannot open {shown}: {error}")))?;
    bounded(file, &shown.to_string())
}

/// Standard input, as bytes.
pub(super) fn stdin() -> Result<Vec<u8>, Failure> {
    bounded(std::io::stdin().lock(), "standard input")
}

fn bounded(reader: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!("{name} is larger than {} MiB", MAX_BYTES / 1024 / 1024)));
    }
    Ok(bytes)
}

/// Bytes that have to be text.
pub(super) fn text(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("{name} is not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))
    })
}

/// The arguments of a call as given on the command line: JSON, `-` or `@FILE`.
pub(super) fn arguments(given: Option<&str>) -> Result<String, Failure> {
    match given {
        None => Ok(String::new()),
        Some("-") => text(stdin()?, "standard input"),
        Some(given) => match given.strip_prefix('@') {
            Some(path) => text(file(Path::new(path))?, path),
            None => Ok(given.to_owned()),
        },
    }
}
