//! [`Accounts`]: connections to a server behind a URL, one for each token, so that no session serves two accounts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capability::Secret;
use crate::mcp::source::config::Limits;
use crate::mcp::source::connection::Connection;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::http::Http;
use crate::tool::Hash;

/// The maximum number of open connections. A further one replaces the least recently used connection.
const MAX_OPEN: usize = 64;

/// The connections of one server, each with the hash of its token.
#[derive(Default)]
pub(super) struct Accounts(Mutex<Vec<(Hash, Arc<Connection>)>>);

impl Accounts {
    fn open(&self) -> MutexGuard<'_, Vec<(Hash, Arc<Connection>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection of a token. Opens the connection if there is none.
    pub(super) async fn of(
        &self,
        http: &Http,
        limits: &Limits,
        token: &Secret<String>,
    ) -> Result<Arc<Connection>, RequestError> {
        let hash = Hash::sha256(token.expose());
        {
            let mut open = self.open();
            let known = open.iter().position(|(of, _)| *of == hash);
            if let Some((_, connection)) = known.map(|at| open.remove(at)).filter(|(_, known)| !known.is_closed()) {
                // The list is ordered by last use.
                open.push((hash, Arc::clone(&connection)));
                return Ok(connection);
            }
        }
        let connection = Arc::new(Connection::to_url(http.with_token(token)?, limits).await?);
        let mut open = self.open();
        open.retain(|(of, _)| *of != hash);
        let left = (open.len() >= MAX_OPEN).then(|| open.remove(0));
        open.push((hash, Arc::clone(&connection)));
        drop(open);
        drop(left);
        Ok(connection)
    }

    /// Removes a connection, but not a newer one that another call has opened with the same token.
    pub(super) fn discard(&self, connection: &Arc<Connection>) {
        self.open().retain(|(_, known)| !Arc::ptr_eq(known, connection));
    }

    /// Closes all connections gracefully.
    pub(super) async fn shutdown(&self) {
        let open = std::mem::take(&mut *self.open());
        for connection in open.into_iter().filter_map(|(_, connection)| Arc::into_inner(connection)) {
            connection.shutdown().await;
        }
    }
}
