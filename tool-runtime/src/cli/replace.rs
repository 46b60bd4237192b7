//! Puts a file in the place of another.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;

/// Writes a file as a whole or not at all.
pub(super) fn whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = fs::File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // What is left of it is of no use.
        let _ = fs::remove_file(&beside);
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    })
}
