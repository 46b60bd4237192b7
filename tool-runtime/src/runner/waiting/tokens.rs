//! Sealed tokens: an encrypted string with a waiting call, which a client keeps for a service without a store.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, Generate as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

use crate::call::{CallId, DecisionError, Question, Suspension};
use crate::runner::run::restore::{put_back, restore};
use crate::runner::run::snapshot::snapshot;
use crate::runner::waiting::comparison;
use crate::runner::{ResumeError, Run, RunOptions, RunSnapshot, ToolRunner};

/// The prefix of every token: the purpose and the version. The encryption authenticates it too.
const PREFIX: &str = "tool-runtime-approval-1";
/// The maximum length of a token, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const NONCE_BYTES: usize = 24;

/// The keys of sealed tokens. The first one encrypts new tokens, and every key decrypts, so that keys can be rotated.
///
/// ```
/// use tool_runtime::runner::SealingKeys;
///
/// # let (this_month, last_month) = ([7; 32], [6; 32]);
/// // 32 random bytes each, from where the application keeps its secrets.
/// let keys = SealingKeys::new("2026-11", this_month).also_opens("2026-10", last_month);
/// # let _ = keys;
/// ```
#[derive(Clone)]
#[must_use]
pub struct SealingKeys(Arc<Vec<(Box<str>, Key)>>);

impl SealingKeys {
    /// Creates a key ring with one key. The key's id is in the token, where everyone can read it.
    pub fn new(id: &str, key: [u8; 32]) -> Self {
        Self(Arc::new(vec![(named(id), key.into())]))
    }

    /// Adds a key that only decrypts earlier tokens. Remove the key once these tokens have expired.
    pub fn also_opens(mut self, id: &str, key: [u8; 32]) -> Self {
        Arc::make_mut(&mut self.0).push((named(id), key.into()));
        self
    }

    fn sealing(&self) -> Option<&(Box<str>, Key)> {
        self.0.first()
    }

    fn opening(&self, id: &str) -> Option<&Key> {
        self.0.iter().find(|(known, _)| **known == *id).map(|(_, key)| key)
    }
}

/// Returns the id as it appears in a token. Dots are replaced, because a dot ends the id.
fn named(id: &str) -> Box<str> {
    id.replace('.', "_").into()
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// The content of a token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    call: CallId,
    run: RunSnapshot,
}

/// See [`Run::seal`].
pub(in crate::runner) async fn seal(run: &Run, call_id: &str, keys: &SealingKeys) -> Result<String, ResumeError> {
    let call = CallId::new(call_id);
    let mut snapshot = snapshot(run).await?;
    snapshot.waiting.retain(|waiting| waiting.call.call_id == call && waiting.call.suspension == Suspension::Approval);
    let Some((id, key)) = keys.sealing().filter(|_| !snapshot.waiting.is_empty()) else {
        return Err(ResumeError::NotWaiting(call));
    };
    // Only an error in the library can prevent the serialization.
    let text = serde_json::to_vec(&Sealed { call, run: snapshot }).map_err(|_| ResumeError::TokenVersion)?;
    let nonce = XNonce::try_generate().map_err(|_| ResumeError::NoRandomness)?;
    let head = format!("{PREFIX}.{id}.");
    let payload = Payload { msg: &text, aad: head.as_bytes() };
    let sealed = XChaCha20Poly1305::new(key).encrypt(&nonce, payload).map_err(|_| ResumeError::TokenVersion)?;
    let mut bytes = nonce.to_vec();
    bytes.extend(sealed);
    Ok(head + URL_SAFE_NO_PAD.encode(bytes).as_str())
}

/// See [`ToolRunner::open_token`].
pub(in crate::runner) async fn open(
    runner: &ToolRunner,
    token: &str,
    keys: &SealingKeys,
    options: RunOptions,
) -> Result<(Run, Question), ResumeError> {
    let Sealed { call, run: mut snapshot } = unsealed(token, keys)?;
    let found = snapshot.waiting.iter().position(|waiting| waiting.call.call_id == call);
    let waiting = snapshot.waiting.swap_remove(found.ok_or(ResumeError::TokenVersion)?);
    let pending = waiting.call.clone();
    if snapshot.principal != options.principal {
        return Err(ResumeError::OtherPrincipal);
    }
    if snapshot.tenant != options.tenant {
        return Err(ResumeError::OtherTenant);
    }
    if runner.shared.is_undated() {
        runner.shared.date().await;
    }
    if pending.is_expired(runner.shared.clock.now()) {
        return Err(ResumeError::TokenExpired);
    }
    let run = restore(runner, snapshot, options).await?;
    if let Some(mismatch) = comparison::differs(&run, &pending) {
        return Err(ResumeError::Mismatch(mismatch));
    }
    put_back(&run, waiting).await?;
    match run.pending(&call).await {
        Ok(Some(waiting)) if waiting.is_same(&pending) => Ok((run, pending.question())),
        // The bearer of the token may have seen the question in the token, but not the new one.
        Ok(Some(waiting)) if waiting.repeats(&pending) => Err(ResumeError::Mismatch(DecisionError::Question)),
        Ok(_) => Err(ResumeError::NotWaiting(call)),
        Err(error) => Err(error.into()),
    }
}

fn unsealed(token: &str, keys: &SealingKeys) -> Result<Sealed, ResumeError> {
    if token.len() > MAX_BYTES {
        return Err(ResumeError::TokenForged);
    }
    let mut parts = token.splitn(3, '.');
    let (Some(prefix), Some(id), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ResumeError::TokenForged);
    };
    if prefix != PREFIX {
        let family = PREFIX.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let version = prefix.strip_prefix(family).filter(|version| version.bytes().all(|one| one.is_ascii_digit()));
        return Err(version.map_or(ResumeError::TokenForged, |_| ResumeError::TokenVersion));
    }
    let key = keys.opening(id).ok_or(ResumeError::TokenKeyUnknown)?;
    let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| ResumeError::TokenForged)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(ResumeError::TokenForged)?;
    let head = format!("{PREFIX}.{id}.");
    let payload = Payload { msg: sealed, aad: head.as_bytes() };
    let opened = XChaCha20Poly1305::new(key).decrypt(&XNonce::from(*nonce), payload);
    let text = opened.map_err(|_| ResumeError::TokenForged)?;
    // The text is authentic, so if it is unreadable, another version wrote it.
    serde_json::from_slice(&text).map_err(|_| ResumeError::TokenVersion)
}
