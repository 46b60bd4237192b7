//! The user's calendar, behind a broker that checks whose it is.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use office_tools::Failure;
use office_tools::calendar::{Calendar, Event};
use rusqlite::params;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};

use crate::adapters::database::Database;

/// Resolves the one account of one tenant.
pub(crate) struct CalendarBroker {
    database: Arc<Database>,
    tenant: &'static str,
    account: &'static str,
}

impl CalendarBroker {
    /// Creates a broker over the database.
    pub(crate) fn new(database: Arc<Database>, tenant: &'static str, account: &'static str) -> Self {
        Self { database, tenant, account }
    }
}

#[async_trait]
impl ConnectionBroker for CalendarBroker {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        if request.id.as_str() != self.account {
            return Err(ConnectionError::Unknown);
        }
        if request.tenant != Some(self.tenant) {
            return Err(ConnectionError::Forbidden);
        }
        let calendar = Account { database: Arc::clone(&self.database), account: self.account };
        Ok(ConnectionHandle::new::<dyn Calendar>(Arc::new(calendar)))
    }
}

struct Account {
    database: Arc<Database>,
    account: &'static str,
}

#[async_trait]
impl Calendar for Account {
    async fn events(&self, from: Date, to: Date) -> Result<Vec<Event>, Failure> {
        let account = self.account;
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
