//! Replaces a file atomically.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::private_file;

/// Writes a file atomically. An existing file keeps its mode; a new one is readable by its owner only.
pub(super) fn whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut beside = path.to_path_buf().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = private_file::options()
        .truncate(true)
        .open(&beside)
        .and_then(|mut file| {
            if let Ok(replaced) = fs::metadata(path) {
                file.set_permissions(replaced.permissions())?;
            }
            file.write_all(bytes).and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // The incomplete file is useless.
        let _ = fs::remove_file(&beside);
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    })
}
