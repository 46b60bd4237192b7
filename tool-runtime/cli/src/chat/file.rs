//! Reads the files that are sent with a prompt.

use std::path::{Path, PathBuf};

use tool_runtime::media::Media;
use tool_runtime::wire::history::Content;
use tool_runtime::wire::{Format, Message};

use crate::exit::Failure;
use crate::{input, terminal};

/// The maximum size of all files together, in bytes; the library has the same limit.
const MAX_BYTES: usize = 20 * 1024 * 1024;

/// The message for a file of a type that no provider accepts.
const UNKNOWN: &str = "its content is not an image, audio, video, a PDF or UTF-8 text";

/// Reads the files of the command line, and prints a note about each file that the provider's format cannot contain.
pub(super) fn files(paths: &[PathBuf], format: Format, model: Option<&str>) -> Result<Vec<Media>, Failure> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for path in paths {
        let file = file(path)?;
        bytes += file.size();
        if bytes > MAX_BYTES {
            return Err(refused(path, &format!("with the files before it, it exceeds {} MiB", MAX_BYTES >> 20)));
        }
        let shown = terminal::safe(&path.display().to_string());
        let message = [Message::User(vec![Content::Media(file.clone())])];
        if !format.encode_messages(&message, model).losses.is_empty() {
            let kind = essence(&file);
            terminal::note(&format!("left out: {shown} ({kind}), which {format} cannot carry; the model gets a note"));
        }
        files.push(file);
    }
    Ok(files)
}

/// Returns the media type without its parameters.
fn essence(file: &Media) -> &str {
    file.media_type().split(';').next().unwrap_or_default().trim()
}

/// Detects the type of a file by its content. For text, the extension of the name selects the type.
fn file(path: &Path) -> Result<Media, Failure> {
    let bytes = input::file_within(path, MAX_BYTES as u64)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = Media::file(&name, &bytes).map_err(|error| match error.code() {
        "media_type_mismatch" => refused(path, UNKNOWN),
        _ => refused(path, &error.to_string()),
    })?;
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if essence(&file) == "text/plain" {
        return match extension.as_str() {
            "csv" => text(path, "text/csv", &bytes),
            "htm" | "html" => text(path, "text/html", &bytes),
            "json" => text(path, "application/json", &bytes),
            "markdown" | "md" => text(path, "text/markdown", &bytes),
            // For example, an HTML error page that was saved as `photo.png`.
            "gif" | "jpeg" | "jpg" | "pdf" | "png" | "webp" => {
                Err(refused(path, "its content is text, but its name has the extension of another type"))
            }
            _ => Ok(file),
        };
    }
    let is_readable = ["image/", "audio/", "video/"].iter().any(|kind| essence(&file).starts_with(kind));
    if is_readable || essence(&file) == "application/pdf" { Ok(file) } else { Err(refused(path, UNKNOWN)) }
}

fn text(path: &Path, media_type: &str, bytes: &[u8]) -> Result<Media, Failure> {
    let file = Media::bytes(media_type, bytes).map_err(|error| refused(path, &error.to_string()))?;
    Ok(file.with_name(&path.file_name().unwrap_or_default().to_string_lossy()))
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} cannot be sent: {why}", path.display())).code("unreadable_input")
}
