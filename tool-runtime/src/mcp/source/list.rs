//! Reads a server's list of tools, page by page, within limits. At a limit, the list ends with the tools that were
//! read.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::mcp::source::connection::Connection;
use crate::mcp::source::definition::{Listed, set_apart};
use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::Route;
use crate::mcp::source::message;
use crate::tool::Hash;

/// The maximum number of pages of a list.
const MAX_PAGES: usize = 100;

/// The maximum number of tools of a list.
const MAX_TOOLS: usize = 10_000;

/// The maximum size of a list, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The longest cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 8 * 1024;

/// The number of tools that are read before the task yields to others.
const TOOLS_A_TURN: usize = 16;

/// A server's list of tools.
pub(super) struct Listing {
    pub(super) tools: Vec<Listed>,
    /// The reason why the list was not read to its end. `None` if it was.
    pub(super) stopped: Option<String>,
}

/// Reads a server's list. It is an error if the first page cannot be read. A later page that cannot be read ends the
/// list.
pub(super) async fn list(server: &str, connection: &Connection, within: Duration) -> Result<Listing, RequestError> {
    let until = Instant::now() + within;
    let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None::<String>);
    let mut seen = HashSet::new();
    let mut stopped = None;
    for page in 0.. {
        if page == MAX_PAGES {
            stopped = Some(format!("it has more than {MAX_PAGES} pages"));
            break;
        }
        let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let left = until.saturating_duration_since(Instant::now());
        let text = match connection.request("tools/list", Route::default(), params, left).await {
            Ok(text) => text,
            Err(failure) if page == 0 => return Err(failure),
            Err(failure) => {
                stopped = Some(format!("page {}: {failure}", page + 1));
                break;
            }
        };
        let read = match read(&text) {
            Some(read) => read,
            None if page == 0 => return Err(RequestError::Unreadable),
            None => {
                stopped = Some(format!("page {}: {}", page + 1, RequestError::Unreadable));
                break;
            }
        };
        bytes += text.len();
        for (at, tool) in read.tools.into_iter().enumerate() {
            if tools.len() < MAX_TOOLS {
                tools.push(Listed::read(server, tool.get(), connection.is_http()));
            }
            if at % TOOLS_A_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        if tools.len() >= MAX_TOOLS || bytes > MAX_BYTES {
            stopped = Some(format!("it has {MAX_TOOLS} tools or more, or more than {MAX_BYTES} bytes"));
            break;
        }
        let Some(next) = read.next else { break };
        // A repeated cursor ends the list. An endless list need not repeat one; the other limits stop it.
        if next.len() > MAX_CURSOR_BYTES || !seen.insert(Hash::sha256(&next)) {
            stopped = Some("it repeats a page, or its cursor is too long".to_owned());
            break;
        }
        cursor = Some(next);
    }
    set_apart(&mut tools);
    Ok(Listing { tools, stopped })
}

/// Reads a page. `None` if the text is not a page.
fn read(text: &str) -> Option<Page<'_>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw<'a> {
        #[serde(borrow, deserialize_with = "message::list")]
        tools: Vec<&'a RawValue>,
        #[serde(borrow)]
        next_cursor: Option<&'a RawValue>,
    }
    let raw: Raw<'_> = serde_json::from_str(text).ok()?;
    let next = match raw.next_cursor {
        Some(cursor) => Some(message::string(cursor.get())?),
        None => None,
    };
    Some(Page { tools: raw.tools, next })
}

struct Page<'a> {
    tools: Vec<&'a RawValue>,
    next: Option<String>,
}
