//! Files of records, one a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::cli::exit::Failure;
use crate::store::SealedRecord;
use crate::store::chain::is_as_written;

/// The longest line of a file of records, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Reads a file of records.
pub(super) fn lines(path: &Path, mut take: impl FnMut(SealedRecord) -> Result<(), Failure>) -> Result<(), Failure> {
    each_line(path, |sealed, _| take(sealed))
}

/// Reads a file of records, line by line. The flag is true if the line holds no more than the record read from it.
pub(super) fn each_line(
    path: &Path,
    mut take: impl FnMut(SealedRecord, bool) -> Result<(), Failure>,
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
        // The text of the error could quote a value.
        let sealed: SealedRecord = serde_json::from_slice(&line).map_err(|error| {
            unreadable(format!("{shown}, line {number}: not a sealed record (column {})", error.column()))
        })?;
        let is_as_written = std::str::from_utf8(&line).is_ok_and(|line| is_as_written(line, &sealed));
        take(sealed, is_as_written)?;
    }
}
