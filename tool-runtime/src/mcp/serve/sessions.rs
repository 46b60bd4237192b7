//! The owners of HTTP sessions, the requests of sessions in progress, and the detection of ambiguous requests.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::runner::RunOptions;

/// The header with the revision of the protocol.
const REVISION: &str = "mcp-protocol-version";

/// The owners of sessions.
#[derive(Default)]
pub(super) struct Parties {
    pub(super) sessions: HashMap<String, RunOptions>,
    /// The owners of sessions that are being created.
    pub(super) begin: Vec<RunOptions>,
}

/// A guard that counts a session while it is being created.
pub(super) struct Begins<'a> {
    pub(super) parties: &'a Mutex<Parties>,
    pub(super) party: &'a RunOptions,
}

impl Drop for Begins<'_> {
    fn drop(&mut self) {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = parties.begin.iter().position(|party| party.is_principal_of(self.party)) {
            drop(parties.begin.swap_remove(at));
        }
    }
}

/// A guard that registers a request of a session until its answer has been sent.
pub(super) struct Runs {
    running: Arc<Mutex<HashSet<(String, RequestId)>>>,
    key: (String, RequestId),
}

impl Runs {
    /// Registers a request of a session until the returned guard is dropped. `None` for any other message.
    ///
    /// # Errors
    /// A request with the same id is still unanswered. The error is the id, as JSON text.
    pub(super) fn begin(
        running: &Arc<Mutex<HashSet<(String, RequestId)>>>,
        session: String,
        body: &[u8],
    ) -> Result<Option<Self>, String> {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
            #[serde(rename = "method")]
            _method: IgnoredAny,
        }
        let Ok(Message { id, .. }) = serde_json::from_slice(body) else { return Ok(None) };
        // Parsed, because one id can have several JSON texts.
        let Ok(read) = serde_json::from_str(id.get()) else { return Ok(None) };
        let key = (session, read);
        let is_new = running.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        if is_new { Ok(Some(Self { running: Arc::clone(running), key })) } else { Err(id.get().to_owned()) }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Whether two parsers could find different hosts, origins or sessions in a request.
pub(super) fn is_ambiguous(uri: &Uri, headers: &HeaderMap) -> bool {
    let several = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
    let named = headers.get(HOST).map(HeaderValue::as_bytes);
    let other =
        |authority: &Authority| named.is_some_and(|host| !host.eq_ignore_ascii_case(authority.as_str().as_bytes()));
    let is_protocol = |name: &&HeaderName| name.as_str().starts_with("mcp-");
    let several_protocol = headers.keys().filter(is_protocol).any(several);
    several(&HOST) || several(&ORIGIN) || several_protocol || uri.authority().is_some_and(other)
}

/// Whether a request names a protocol revision without sessions.
pub(super) fn is_without_sessions(headers: &HeaderMap) -> bool {
    headers.get(REVISION).and_then(|one| one.to_str().ok()).is_some_and(|one| one >= "2026-07-28")
}
