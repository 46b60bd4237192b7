//! The workspace folder. It is opened once as a directory handle, which gives no access to files outside it.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry};
use office_tools::Failure;
use office_tools::files::{FileReader, FileText, FileWriter};

use crate::adapters::{blocking, unavailable};

/// The maximum number of bytes that are read of a file.
const MAX_BYTES: u64 = 1024 * 1024;

const PLAN: &str = "# Plan\n\n1. Finish the onboarding.\n2. Renew the lease.\n3. Order paper.\n";

/// The workspace folder.
pub(crate) struct Workspace(Arc<Dir>);

impl Workspace {
    /// Opens the folder. A new folder gets example files.
    pub(crate) fn open(path: &Path) -> Result<Self, std::io::Error> {
        let is_new = !path.exists();
        std::fs::create_dir_all(path)?;
        let folder = Dir::open_ambient_dir(path, ambient_authority())?;
        if is_new {
            folder.write("plan.md", PLAN)?;
            folder.create_dir_all("notes")?;
            folder.write("notes/todo.md", "- call the landlord\n- water the plants\n")?;
        }
        Ok(Self(Arc::new(folder)))
    }

    /// Lists the files, one line each, without changing anything.
    pub(crate) fn describe(path: &Path) -> Result<Vec<String>, std::io::Error> {
        let mut lines = Vec::new();
        if !path.exists() {
            return Ok(lines);
        }
        let folder = Dir::open_ambient_dir(path, ambient_authority())?;
        walk(&folder, "", &mut |path, file| {
            lines.push(format!("file {path}  {} bytes", file.metadata()?.len()));
            Ok(true)
        })?;
        Ok(lines)
    }
}

fn failure(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Failure::NotFound,
        // A path out of the folder gives one of these errors, too.
        ErrorKind::PermissionDenied | ErrorKind::InvalidInput => Failure::Forbidden,
        ErrorKind::InvalidData | ErrorKind::IsADirectory => Failure::Unreadable,
        _ => unavailable(error),
    }
}

/// Reads the first bytes of a file as text, cut at a character boundary.
fn read(folder: &Dir, path: &str, max_bytes: u64) -> Result<FileText, std::io::Error> {
    // The kind is checked first, because opening a pipe would wait for a writer.
    if !folder.metadata(path)?.is_file() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let file = folder.open(path)?;
    let limit = max_bytes.min(MAX_BYTES);
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    let truncated = bytes.len() as u64 > limit;
    if truncated {
        bytes.pop();
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Only the last character may be incomplete, because the text was cut there.
        Err(error) if truncated && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData)?
        }
        Err(_) => return Err(ErrorKind::InvalidData.into()),
    };
    Ok(FileText { path: path.to_owned(), text, truncated })
}

type Each<'e> = dyn FnMut(&str, &DirEntry) -> Result<bool, std::io::Error> + 'e;

/// Visits every file below a folder, in no particular order, until `each` returns `false`.
fn walk(folder: &Dir, prefix: &str, each: &mut Each<'_>) -> Result<bool, std::io::Error> {
    for entry in folder.entries()? {
        let entry = entry?;
        // Files whose names are not UTF-8 are skipped, because no argument could name them.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        let goes_on = if kind.is_dir() {
            walk(&entry.open_dir()?, &path, each)?
        } else if kind.is_file() {
            each(&path, &entry)?
        } else {
            true
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

#[async_trait]
impl FileReader for Workspace {
    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileText, Failure> {
        let (folder, path) = (Arc::clone(&self.0), path.to_owned());
        blocking(move || read(&folder, &path, max_bytes).map_err(failure)).await
    }

    fn visit(&self, each: &mut dyn FnMut(&str, &str) -> bool) -> Result<(), Failure> {
        let visited = walk(&self.0, "", &mut |path, _| match read(&self.0, path, MAX_BYTES) {
            Ok(file) => Ok(each(path, &file.text)),
            // Files that are not text, were removed, or are not readable are skipped.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::NotFound | ErrorKind::PermissionDenied
                ) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        });
        visited.map(|_| ()).map_err(failure)
    }
}

#[async_trait]
impl FileWriter for Workspace {
    async fn write(&self, path: &str, text: &str) -> Result<(), Failure> {
        let (folder, path, text) = (Arc::clone(&self.0), path.to_owned(), text.to_owned());
        blocking(move || {
            if let Some(parent) = Path::new(&path).parent().filter(|parent| !parent.as_os_str().is_empty()) {
                folder.create_dir_all(parent).map_err(failure)?;
            }
            // The text is written to a temporary file, which is then renamed, so that no reader sees a part of it.
            let beside = Path::new(&path).with_file_name(format!(".{}.part", uuid::Uuid::new_v4()));
            let written = folder.write(&beside, &text).and_then(|()| folder.rename(&beside, &folder, &path));
            written.map_err(|error| {
                // The first error is reported, not that of the removal.
                let _ = folder.remove_file(&beside);
                failure(error)
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_outside_is_reached() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("secret.txt"), "no").unwrap();
        let workspace = Workspace::open(&data.path().join("workspace")).unwrap();
        for path in ["../secret.txt", "/etc/passwd", "notes/../../secret.txt"] {
            assert!(FileReader::read(&workspace, path, 10).await.is_err(), "{path}");
            assert!(workspace.write(path, "x").await.is_err(), "{path}");
        }
        assert_eq!(FileReader::read(&workspace, "plan.md", 6).await.unwrap().text, "# Plan");
        assert!(matches!(FileReader::read(&workspace, "none.md", 6).await, Err(Failure::NotFound)));
        assert!(matches!(FileReader::read(&workspace, "notes", 6).await, Err(Failure::Unreadable)));
        assert!(matches!(FileReader::read(&workspace, "plan.md/x", 6).await, Err(Failure::NotFound)));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_does_not_lead_outside() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("secret.txt"), "no").unwrap();
        let workspace = Workspace::open(&data.path().join("workspace")).unwrap();
        std::os::unix::fs::symlink("../secret.txt", data.path().join("workspace/link.txt")).unwrap();
        std::os::unix::fs::symlink("..", data.path().join("workspace/up")).unwrap();
        for path in ["link.txt", "up/secret.txt"] {
            assert!(FileReader::read(&workspace, path, 10).await.is_err(), "{path}");
        }
        assert!(workspace.write("up/secret.txt", "x").await.is_err());
        assert_eq!(std::fs::read_to_string(data.path().join("secret.txt")).unwrap(), "no");
    }

    #[tokio::test]
    async fn text_is_cut_between_characters_and_other_files_survive() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("workspace");
        let workspace = Workspace::open(&path).unwrap();
        workspace.write("new/plan.md.part", "mine").await.unwrap();
        workspace.write("new/plan.md", "a\u{e9}b").await.unwrap();
        let cut = FileReader::read(&workspace, "new/plan.md", 2).await.unwrap();
        assert_eq!((cut.text.as_str(), cut.truncated), ("a", true));
        assert_eq!(FileReader::read(&workspace, "new/plan.md.part", 9).await.unwrap().text, "mine");
        assert!(workspace.write("notes", "a folder").await.is_err());
        std::fs::write(path.join("binary"), [0xff, 0xfe]).unwrap();
        assert!(matches!(FileReader::read(&workspace, "binary", 9).await, Err(Failure::Unreadable)));
        let mut seen = Vec::new();
        workspace
            .visit(&mut |path, _| {
                seen.push(path.to_owned());
                true
            })
            .unwrap();
        seen.sort();
        assert_eq!(seen, ["new/plan.md", "new/plan.md.part", "notes/todo.md", "plan.md"]);
        assert_eq!(Workspace::describe(&path).unwrap().len(), 5);
        assert!(Workspace::describe(&data.path().join("none")).unwrap().is_empty());
    }
}
