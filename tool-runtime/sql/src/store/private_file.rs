//! Creates database files that only their owner may read.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that only its owner may read or write, regardless of the umask. An existing file keeps its mode.
pub(super) fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Returns the mode of a file if other users may read or write it; otherwise `None`, and also on systems without modes.
pub(super) fn shared_mode(path: &Path) -> Option<u32> {
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
