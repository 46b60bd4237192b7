//! Creates files that only their owner may read, because conversations, policies and logs contain arguments of calls.
//!
//! `tool-runtime-sql` has its own [`shared_mode`]. This package depends on `tool-runtime-sql` only with a database,
//! and `tool-runtime`, on which both depend, never writes files.

use std::fs;
use std::fs::OpenOptions;
use std::path::Path;

/// Returns options for opening a file to write. A new file is readable by its owner only, under any umask; an existing
/// file keeps its mode.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its missing parents, readable by their owner only. An existing folder keeps its mode.
pub(crate) fn folder(path: &Path) -> std::io::Result<()> {
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Returns the mode of a file that other users may read or write. `None` for a private file, a missing file, and on
/// systems without modes.
pub(crate) fn shared_mode(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = fs::metadata(path);
        None
    }
}

/// Returns the warning about a file that other users may open.
pub(crate) fn warning(path: &Path, mode: u32) -> String {
    format!("other users may open {} (mode {mode:04o}): chmod 600 keeps it to its owner", path.display())
}
