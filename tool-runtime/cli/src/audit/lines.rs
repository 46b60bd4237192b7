//! Reads files of records, one per line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use tool_runtime::store::SealedRecord;

use crate::exit::Failure;

/// The longest line of a file of records, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Reads a file of records.
pub(super) fn lines(path: &Path, mut take: impl FnMut(SealedRecord) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut taken = Ok(());
    each_line(path, |line| {
        let sealed = serde_json::from_str(line)?;
        if taken.is_ok() {
            taken = take(sealed);
        }
        Ok(())
    })?;
    taken
}

/// Reads a file of records, line by line.
pub(super) fn each_line(
    path: &Path,
    mut take: impl FnMut(&str) -> Result<(), serde_json::Error>,
) -> Result<(), Failure> {
    let unreadable = |message: String| Failure::usage(message).code("unreadable_input");
    let shown = path.display();
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| unreadable(format!("cannot open {shown}: {error}")))?)
    };
    let (mut reader, mut line, mut number) = (BufReader::new(reader), Vec::new(), 0_u64);
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| unreadable(format!("cannot read {shown}: {error}")))? == 0 {
            return Ok(());
        }
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let wrong = |column| unreadable(format!("{shown}, line {number}: not a sealed record (column {column})"));
        let text = std::str::from_utf8(&line).map_err(|error| wrong(error.valid_up_to() + 1))?;
        // The error's text could quote a private value, so the message has only the column.
        take(text).map_err(|error| wrong(error.column()))?;
    }
}
