//! Sealed tokens: a waiting call as a text that a client carries, for services without a store.

use std::error::Error;
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
use crate::runner::{RestoreError, Run, RunOptions, RunSnapshot, ToolRunner};
use crate::store::StoreError;

/// The prefix of every token. It names the purpose and the version, and is authenticated with the rest.
const PREFIX: &str = "tool-runtime-approval-1";
/// The longest token that is read, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const NONCE_BYTES: usize = 24;

/// The keys of sealed tokens: the first one seals, and all of them open, so that a key can be rotated.
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
    /// Creates a ring of one key. The key's id is in the token, readable by everyone.
    pub fn new(id: &str, key: [u8; 32]) -> Self {
        Self(Arc::new(vec![(named(id), key.into())]))
    }

    /// Adds a key that opens tokens sealed with it earlier. Remove it once they have expired.
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

/// Returns the id as it appears in a token: a dot would end it.
fn named(id: &str) -> Box<str> {
    id.replace('.', "_").into()
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// The reason why a call cannot be sealed, or a token cannot be opened. No tool ran.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// No call waits for an approval under this id, or it no longer does.
    NotWaiting(CallId),
    /// The text is not a token, or was changed.
    Forged,
    /// The key that sealed the token is not in the ring.
    UnknownKey,
    /// Another version of the library sealed the token.
    Version,
    /// The call expired.
    Expired,
    /// The call belongs to another principal.
    OtherPrincipal,
    /// The call belongs to another tenant.
    OtherTenant,
    /// The suspended call differs from the one that would run.
    Mismatch(DecisionError),
    /// The run cannot be restored.
    Restore(RestoreError),
    /// The system gave no random bytes.
    NoRandomness,
}

impl TokenError {
    /// Returns the stable code: `not_pending`, `token_forged`, `token_key_unknown`, `token_version`, `token_expired`,
    /// `other_principal`, `other_tenant`, `no_randomness`, and those of [`DecisionError`] and [`RestoreError`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotWaiting(_) => "not_pending",
            Self::Forged => "token_forged",
            Self::UnknownKey => "token_key_unknown",
            Self::Version => "token_version",
            Self::Expired => "token_expired",
            Self::OtherPrincipal => "other_principal",
            Self::OtherTenant => "other_tenant",
            Self::Mismatch(mismatch) => mismatch.code(),
            Self::Restore(error) => error.code(),
            Self::NoRandomness => "no_randomness",
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWaiting(_) => "no call waits for an approval; it may have been decided already",
            Self::Forged => "this is not a token that was sealed here, or it was changed",
            Self::UnknownKey => "the token was sealed with a key that is not in use any more",
            Self::Version => "the token was sealed by another version of the library",
            Self::Expired => "the token expired",
            Self::OtherPrincipal => "the token belongs to another principal",
            Self::OtherTenant => "the token belongs to another tenant",
            Self::Mismatch(mismatch) => return mismatch.fmt(f),
            Self::Restore(error) => return error.fmt(f),
            Self::NoRandomness => "the system gave no random bytes",
        })
    }
}

impl Error for TokenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Restore(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        Self::Restore(RestoreError::Store(error))
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
pub(in crate::runner) async fn seal(run: &Run, call_id: &str, keys: &SealingKeys) -> Result<String, TokenError> {
    let call = CallId::new(call_id);
    let mut snapshot = snapshot(run).await?;
    snapshot.waiting.retain(|waiting| waiting.call.call_id == call && waiting.call.suspension == Suspension::Approval);
    let Some((id, key)) = keys.sealing().filter(|_| !snapshot.waiting.is_empty()) else {
        return Err(TokenError::NotWaiting(call));
    };
    // A document that cannot be serialized is an error of the library; no process could open its token.
    let text = serde_json::to_vec(&Sealed { call, run: snapshot }).map_err(|_| TokenError::Version)?;
    let nonce = XNonce::try_generate().map_err(|_| TokenError::NoRandomness)?;
    let head = format!("{PREFIX}.{id}.");
    let payload = Payload { msg: &text, aad: head.as_bytes() };
    let sealed = XChaCha20Poly1305::new(key).encrypt(&nonce, payload).map_err(|_| TokenError::Version)?;
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
) -> Result<(Run, Question), TokenError> {
    let Sealed { call, run: mut snapshot } = unsealed(token, keys)?;
    let found = snapshot.waiting.iter().position(|waiting| waiting.call.call_id == call);
    let waiting = snapshot.waiting.swap_remove(found.ok_or(TokenError::Version)?);
    let pending = waiting.call.clone();
    if snapshot.principal != options.principal {
        return Err(TokenError::OtherPrincipal);
    }
    if snapshot.tenant != options.tenant {
        return Err(TokenError::OtherTenant);
    }
    if runner.shared.is_undated() {
        runner.shared.date().await;
    }
    if pending.is_expired(runner.shared.clock.now()) {
        return Err(TokenError::Expired);
    }
    let run = restore(runner, snapshot, options).await.map_err(TokenError::Restore)?;
    if let Some(mismatch) = comparison::differs(&run, &pending) {
        return Err(TokenError::Mismatch(mismatch));
    }
    put_back(&run, waiting).await?;
    match run.pending(&call).await {
        Ok(Some(waiting)) if waiting.is_same(&pending) => Ok((run, pending.question())),
        Ok(_) => Err(TokenError::NotWaiting(call)),
        Err(error) => Err(error.into()),
    }
}

fn unsealed(token: &str, keys: &SealingKeys) -> Result<Sealed, TokenError> {
    if token.len() > MAX_BYTES {
        return Err(TokenError::Forged);
    }
    let mut parts = token.splitn(3, '.');
    let (Some(prefix), Some(id), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(TokenError::Forged);
    };
    if prefix != PREFIX {
        let family = PREFIX.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let version = prefix.strip_prefix(family).filter(|version| version.bytes().all(|one| one.is_ascii_digit()));
        return Err(version.map_or(TokenError::Forged, |_| TokenError::Version));
    }
    let key = keys.opening(id).ok_or(TokenError::UnknownKey)?;
    let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| TokenError::Forged)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(TokenError::Forged)?;
    let head = format!("{PREFIX}.{id}.");
    let payload = Payload { msg: sealed, aad: head.as_bytes() };
    let opened = XChaCha20Poly1305::new(key).decrypt(&XNonce::from(*nonce), payload);
    let text = opened.map_err(|_| TokenError::Forged)?;
    // The text is authentic, so an unreadable one was written by another version.
    serde_json::from_slice(&text).map_err(|_| TokenError::Version)
}
