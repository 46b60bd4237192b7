//! Conversations and waiting calls as documents below the data folder, so that a later command can continue them.
//!
//! A document contains sensitive arguments, so only its owner may read it. A decision first claims the document with a
//! lock on a file next to it, and writes a mark into that file. If the process dies, the operating system releases the
//! lock, but the mark stays. It shows that the call may have run, and the next decision is refused once with a message.

use std::fs;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tool_runtime::agent::SavedConversation;
use tool_runtime::runner::RunSnapshot;
use tool_runtime::store::PendingCall;

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::{input, private_file, terminal};

/// The folder below the data folder.
const FOLDER: &str = "conversations";
/// The version of documents that this package writes, and the only one that it reads.
const VERSION: u32 = 1;
/// The content of a lock file while a decision is carried out.
const MARK: &[u8] = b"a decision is being carried out\n";

/// A document as written to disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    version: u32,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) changed: Timestamp,
    pub(super) document: Document,
}

/// A single call, or a conversation with a model.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Document {
    Call(Box<RunSnapshot>),
    Chat(Box<SavedConversation>),
}

impl Document {
    /// Returns the calls that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &PendingCall> {
        match self {
            Self::Call(run) => run.waiting(),
            Self::Chat(conversation) => conversation.run().waiting(),
        }
    }
}

/// The folder with the documents.
pub(super) struct ConversationFiles(PathBuf);

impl ConversationFiles {
    pub(super) fn of(cli: &Cli<'_>) -> Self {
        Self(cli.settings.data.join(FOLDER))
    }

    /// Creates a document. The first save creates its file.
    pub(super) fn create(&self, title: String) -> OpenDocument {
        let id = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        OpenDocument { path: self.path(&id), id, title, seen: None, claim: None }
    }

    /// Whether there is a document with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        // The id becomes a file name, so it must not contain a path, such as `../other`.
        let is_name = !id.is_empty() && id.chars().all(|letter| letter.is_ascii_alphanumeric());
        is_name && self.path(id).is_file()
    }

    /// Opens a saved document.
    pub(super) fn open(&self, id: &str) -> Result<(OpenDocument, Document), Failure> {
        let path = self.path(id);
        if !self.has(id) {
            return Err(Failure::usage(format!(
                "there is no conversation `{}` in {}",
                terminal::safe(id),
                self.0.display()
            ))
            .code("not_found"));
        }
        let saved = read(&path)?;
        let Saved { id, title, changed, document, .. } = saved;
        Ok((OpenDocument { path, id, title, seen: Some(changed), claim: None }, document))
    }

    /// Returns all readable documents, the last changed one at the end. Prints a note about each unreadable one.
    pub(super) fn all(&self) -> Result<Vec<Saved>, Failure> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("read", &self.0, &error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| cannot("read", &self.0, &error))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                match read(&path) {
                    Ok(saved) => all.push(saved),
                    // An unreadable document does not hide the others.
                    Err(failure) => terminal::note(&terminal::safe_lines(&failure.message)),
                }
            }
        }
        all.sort_by(|one, other| (one.changed, &one.id).cmp(&(other.changed, &other.id)));
        Ok(all)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }
}

/// A document that this process has created or opened.
pub(super) struct OpenDocument {
    path: PathBuf,
    pub(super) id: String,
    pub(super) title: String,
    /// The document's time stamp when this process last read or wrote it; `None` if it was never saved.
    seen: Option<Timestamp>,
    /// The locked file, while this process has a claim.
    claim: Option<File>,
}

impl OpenDocument {
    /// Claims the document for a decision. The next save, or the removal of the document, ends the claim. A document
    /// that was never saved needs no claim, because no other process can find it.
    pub(super) fn claim(&mut self) -> Result<(), Failure> {
        if self.claim.is_some() || self.seen.is_none() {
            return Ok(());
        }
        let lock = self.path.with_extension("lock");
        let failed = |error: std::io::Error| cannot("lock", &lock, &error);
        let mut file = private_file::options().read(true).truncate(false).open(&lock).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = format!("another process carries out a decision on `{}`; wait until it ends", self.id);
                return Err(Failure::failed(text).code("claimed"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if let Err(failure) = self.unchanged() {
            // Another decision removed the document and its lock file, and this process has just created the lock file
            // again.
            if !self.path.exists() {
                let _ = fs::remove_file(&lock);
            }
            return Err(failure);
        }
        if file.metadata().map_err(failed)?.len() > 0 {
            file.set_len(0).map_err(failed)?;
            return Err(Failure::failed(format!(
                "a process died while it carried out a decision on `{}`, so the call may have run; check what it \
                 changed, then run the command again to decide",
                self.id
            ))
            .code("interrupted"));
        }
        file.write_all(MARK).and_then(|()| file.sync_all()).map_err(failed)?;
        self.claim = Some(file);
        Ok(())
    }

    /// Releases a claim after the decision was saved or abandoned.
    pub(super) fn release(&mut self) {
        // The file stays. Otherwise a process that has it open would lock a removed file, and exclude no other process.
        if let Some(file) = self.claim.take() {
            let _ = file.set_len(0);
        }
    }

    /// Replaces the document.
    pub(super) fn save(&mut self, document: Document) -> Result<(), Failure> {
        if let Some(parent) = self.path.parent() {
            private_file::folder(parent).map_err(|error| cannot("use", parent, &error))?;
        }
        self.unchanged()?;
        let changed = Timestamp::now();
        let (id, title) = (self.id.clone(), self.title.clone());
        let saved = Saved { version: VERSION, id, title, changed, document };
        let text = serde_json::to_vec(&saved).map_err(|error| Failure::failed(error.to_string()))?;
        let beside = self.path.with_extension(format!("{}.part", std::process::id()));
        let written = private_file::options()
            .truncate(true)
            .open(&beside)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, &self.path));
        if let Err(error) = written {
            let _ = fs::remove_file(&beside);
            return Err(cannot("write", &self.path, &error));
        }
        self.seen = Some(changed);
        self.release();
        Ok(())
    }

    /// Removes the document. Use it when no call waits any more.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(|error| cannot("remove", &self.path, &error))?;
        if self.claim.take().is_some() {
            let _ = fs::remove_file(self.path.with_extension("lock"));
        }
        Ok(())
    }

    /// Whether another process wrote or removed the document since this one read it.
    pub(super) fn has_changed(&self) -> Result<bool, Failure> {
        let current = if self.path.is_file() { Some(read(&self.path)?.changed) } else { None };
        Ok(current != self.seen)
    }

    /// Fails if another process wrote or removed the document since this one read it.
    fn unchanged(&self) -> Result<(), Failure> {
        if !self.has_changed()? {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "another process has changed `{}` in the meantime; run the command again",
            self.id
        ))
        .code("changed"))
    }
}

fn read(path: &Path) -> Result<Saved, Failure> {
    let name = path.display().to_string();
    let text = input::text(input::file(path)?, &name)?;
    let saved: Result<Saved, _> = serde_json::from_str(&text);
    match saved {
        Ok(saved) if saved.version == VERSION => Ok(saved),
        // The error's text may quote the document, so the message has only the position.
        Err(error) => Err(Failure::usage(format!(
            "{name} is not a saved conversation of this version (line {}, column {}); move it away",
            error.line(),
            error.column()
        ))
        .code("unreadable_input")),
        Ok(_) => {
            Err(Failure::usage(format!("{name} was saved by another version; move it away")).code("unreadable_input"))
        }
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    let exit = if what == "read" { Exit::Usage } else { Exit::Failed };
    Failure { exit, code: "data_unavailable", message: format!("cannot {what} {}: {error}", path.display()) }
}
