//! [`CalendarBroker`]: opens a user's calendar. It checks the owner and refreshes the tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use office_tools::Failure;
use office_tools::calendar::{Calendar, Event};
use office_tools::time::Clock;
use rusqlite::params;
use tool_runtime::Secret;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};

use crate::adapters::database::Database;
use crate::adapters::service::{Authority, CalendarService, RefreshError};
use crate::adapters::vault::{AccountKey, Tokens, Vault};

/// An access token is refreshed this long before it expires.
const AHEAD: SignedDuration = SignedDuration::from_secs(60);

/// The pause after a failed refresh, during which calls use the old token while it is valid.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// The maximum number of accounts for which the last failure is kept.
const MAX_ACCOUNTS: usize = 1024;

/// Resolves the accounts in the vault.
pub(crate) struct CalendarBroker {
    database: Arc<Database>,
    service: Arc<CalendarService>,
    fresh: Arc<Fresh>,
}

impl CalendarBroker {
    /// Creates a broker for the accounts in the vault.
    pub(crate) fn new(
        database: Arc<Database>,
        service: Arc<CalendarService>,
        vault: Vault,
        authority: Arc<dyn Authority>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let fresh = Arc::new(Fresh { vault, authority, clock, turns: Mutex::default() });
        Self { database, service, fresh }
    }
}

#[async_trait]
impl ConnectionBroker for CalendarBroker {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        // The key contains tenant and principal, so an account of another principal is not found.
        let (Some(tenant), Some(principal)) = (request.tenant, request.principal) else {
            return Err(ConnectionError::Unknown);
        };
        let place = AccountKey {
            tenant: tenant.to_owned(),
            principal: principal.to_owned(),
            id: request.id.as_str().to_owned(),
        };
        let tokens = Fresh::tokens(&self.fresh, place).await?;
        let (database, service) = (Arc::clone(&self.database), Arc::clone(&self.service));
        let calendar = Account { database, service, access: Secret::new(tokens.access) };
        Ok(ConnectionHandle::new::<dyn Calendar>(Arc::new(calendar)))
    }
}

/// Refreshes tokens before they expire. Concurrent calls share one refresh.
struct Fresh {
    vault: Vault,
    authority: Arc<dyn Authority>,
    clock: Arc<dyn Clock>,
    /// A lock for each account, so that only one call refreshes its tokens. It holds the time of the last failure.
    turns: Mutex<HashMap<AccountKey, Arc<tokio::sync::Mutex<Option<Timestamp>>>>>,
}

impl Fresh {
    /// Returns valid tokens. They are read for each call, so that a call fails after its connection was revoked.
    async fn tokens(this: &Arc<Self>, place: AccountKey) -> Result<Tokens, ConnectionError> {
        let kept = this.vault.get(&place).await.map_err(failed)?.ok_or(ConnectionError::Unknown)?;
        if !this.ends_within(&kept.tokens, AHEAD) {
            return Ok(kept.tokens);
        }
        // The refresh is a separate task, because a dropped call would lose the new tokens, and the old ones may be
        // invalid.
        let this = Arc::clone(this);
        tokio::spawn(async move { this.refreshed(&place).await }).await.map_err(failed)?
    }

    async fn refreshed(&self, place: &AccountKey) -> Result<Tokens, ConnectionError> {
        let turn = self.turn(place);
        let mut failed_at = turn.lock().await;
        // The previous holder of the lock may have refreshed the tokens, or the connection may have been revoked.
        let kept = self.vault.get(place).await.map_err(failed)?.ok_or(ConnectionError::Unknown)?;
        let lasts = !self.ends_within(&kept.tokens, SignedDuration::ZERO);
        // Without `abs`, a clock that was set back would prolong the pause.
        let pauses = failed_at.is_some_and(|at| self.clock.now().duration_since(at).abs() < PAUSE);
        if !self.ends_within(&kept.tokens, AHEAD) || (lasts && pauses) {
            return Ok(kept.tokens);
        }
        match self.authority.refresh(&kept.tokens.refresh).await {
            Ok(tokens) => {
                *failed_at = None;
                if self.vault.replace(place, &kept, &tokens).await.map_err(failed)? {
                    return Ok(tokens);
                }
                // Another process has refreshed the tokens, or the connection was revoked.
                let now = self.vault.get(place).await.map_err(failed)?.ok_or(ConnectionError::Unknown)?;
                if self.ends_within(&now.tokens, SignedDuration::ZERO) {
                    Err(ConnectionError::Expired)
                } else {
                    Ok(now.tokens)
                }
            }
            Err(_) if lasts => {
                *failed_at = Some(self.clock.now());
                Ok(kept.tokens)
            }
            Err(RefreshError::Refused) => Err(ConnectionError::Expired),
            Err(RefreshError::Failed(error)) => Err(ConnectionError::Failed(error)),
        }
    }

    fn ends_within(&self, tokens: &Tokens, time: SignedDuration) -> bool {
        tokens.expires_at.duration_since(self.clock.now()) <= time
    }

    fn turn(&self, place: &AccountKey) -> Arc<tokio::sync::Mutex<Option<Timestamp>>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= MAX_ACCOUNTS {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(place.clone()).or_default())
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ConnectionError {
    ConnectionError::Failed(error.into())
}

/// The calendar account of one call.
struct Account {
    database: Arc<Database>,
    service: Arc<CalendarService>,
    access: Secret<String>,
}

#[async_trait]
impl Calendar for Account {
    async fn events(&self, from: Date, to: Date) -> Result<Vec<Event>, Failure> {
        let account = self.service.account(self.access.expose())?;
        let rows = self.database.run(move |connection| {
            let mut statement = connection.prepare(
                "SELECT date, title, attendees FROM events WHERE account = ?1 AND date BETWEEN ?2 AND ?3 ORDER BY date",
            )?;
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, String>(2)?));
            statement.query_map(params![account, from.to_string(), to.to_string()], row)?.collect::<Result<Vec<_>, _>>()
        });
        let event = |(date, title, attendees): (String, String, String)| {
            let date = date.parse().map_err(super::unavailable)?;
            Ok(Event { date, title, attendees: attendees.split(',').map(ToOwned::to_owned).collect() })
        };
        rows.await?.into_iter().map(event).collect()
    }
}

#[cfg(test)]
mod tests;
