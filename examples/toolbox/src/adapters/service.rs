//! A stand-in for a remote calendar service, which issues and accepts tokens for accounts.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use chacha20poly1305::Key;
use jiff::{SignedDuration, Timestamp};
use office_tools::Failure;
use office_tools::time::Clock;

use crate::adapters::unavailable;
use crate::adapters::vault::{Tokens, seal, unseal};

/// The lifetime of an access token.
const LASTS: SignedDuration = SignedDuration::from_mins(15);

/// Issues new tokens for an account.
#[async_trait]
pub(crate) trait Authority: Send + Sync {
    /// Returns new tokens for a refresh token, which may be invalid afterwards.
    async fn refresh(&self, refresh: &str) -> Result<Tokens, RefreshError>;
}

/// The reason why there are no new tokens. It contains no text of the service, which could repeat the sent token.
pub(crate) enum RefreshError {
    /// The account has to be connected again.
    Refused,
    /// The service failed.
    Failed(Box<dyn Error + Send + Sync>),
}

/// The service.
pub(crate) struct CalendarService {
    key: Key,
    clock: Arc<dyn Clock>,
}

impl CalendarService {
    pub(crate) const fn new(key: Key, clock: Arc<dyn Clock>) -> Self {
        Self { key, clock }
    }

    /// Returns the first tokens of an account.
    pub(crate) fn issue(&self, account: &str) -> Result<Tokens, Failure> {
        let expires_at = self.clock.now().saturating_add(LASTS).unwrap_or(Timestamp::MAX);
        let token = |kind, text: &str| seal(&self.key, kind, text).map(|sealed| hex(&sealed));
        let access = token("access", &format!("{expires_at}\n{account}"))?;
        Ok(Tokens { access, refresh: token("refresh", account)?, expires_at })
    }

    /// Returns the account of an access token.
    pub(crate) fn account(&self, access: &str) -> Result<String, Failure> {
        let text = bytes(access).and_then(|sealed| unseal(&self.key, "access", &sealed)).ok_or(Failure::Forbidden)?;
        let (expires_at, account) = text.split_once('\n').ok_or(Failure::Forbidden)?;
        let expires_at: Timestamp = expires_at.parse().map_err(unavailable)?;
        if expires_at <= self.clock.now() { Err(Failure::Forbidden) } else { Ok(account.to_owned()) }
    }
}

#[async_trait]
impl Authority for CalendarService {
    async fn refresh(&self, refresh: &str) -> Result<Tokens, RefreshError> {
        let account = bytes(refresh).and_then(|sealed| unseal(&self.key, "refresh", &sealed));
        let account = account.ok_or(RefreshError::Refused)?;
        self.issue(&account).map_err(|error| RefreshError::Failed(error.into()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + format!("{byte:02x}").as_str())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(digits).collect()
}
