//! The files that go to the model with a prompt.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::cli::{input, terminal};
use crate::media::{MAX_BYTES, Media, MediaError};
use crate::wire::history::Content;
use crate::wire::{Format, Message};

/// Why a file of a type that no provider reads is refused.
const UNKNOWN: &str = "its content is not an image, audio, video, a PDF or UTF-8 text";

/// Reads the files of the command line and says which of them the format cannot carry.
pub(super) fn files(paths: &[PathBuf], format: Format, model: Option<&str>) -> Result<Vec<Media>, Failure> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for path in paths {
        let file = file(path)?;
        bytes += file.size();
        if bytes > MAX_BYTES {
            return Err(refused(path, &format!("with the files before it, it has more than {} MiB", MAX_BYTES >> 20)));
        }
        let shown = terminal::safe(&path.display().to_string());
        let message = [Message::User(vec![Content::Media(file.clone())])];
        if !format.encode_messages(&message, model).losses.is_empty() {
            let kind = file.essence();
            terminal::note(&format!("left out: {shown} ({kind}), which {format} cannot carry; the model is told so"));
        }
        files.push(file);
    }
    Ok(files)
}

/// The content decides what a file is; the name tells kinds of text apart.
fn file(path: &Path) -> Result<Media, Failure> {
    let bytes = input::file_within(path, MAX_BYTES as u64)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = Media::file(&name, &bytes).map_err(|error| match error {
        MediaError::Mismatch { .. } => refused(path, UNKNOWN),
        error => refused(path, &error.to_string()),
    })?;
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if file.essence() == "text/plain" {
        return match extension.as_str() {
            "csv" => text(path, "text/csv", &bytes),
            "htm" | "html" => text(path, "text/html", &bytes),
            "json" => text(path, "application/json", &bytes),
            "markdown" | "md" => text(path, "text/markdown", &bytes),
            // An error page that was saved under the name of a download.
            "gif" | "jpeg" | "jpg" | "pdf" | "png" | "webp" => {
                Err(refused(path, "its content is text, not what its name says"))
            }
            _ => Ok(file),
        };
    }
    let is_readable = ["image/", "audio/", "video/"].iter().any(|kind| file.essence().starts_with(kind));
    if is_readable || file.essence() == "application/pdf" { Ok(file) } else { Err(refused(path, UNKNOWN)) }
}

fn text(path: &Path, media_type: &str, bytes: &[u8]) -> Result<Media, Failure> {
    let file = Media::bytes(media_type, bytes).map_err(|error| refused(path, &error.to_string()))?;
    Ok(file.with_name(&path.file_name().unwrap_or_default().to_string_lossy()))
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} cannot be sent: {why}", path.display())).code("unreadable_input")
}
