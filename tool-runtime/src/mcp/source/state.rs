//! [`ServerState`]: the known state of one MCP server. The server's background task writes it; calls and listings of
//! tools read it.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio_util::sync::CancellationToken;

use crate::mcp::source::accounts::Accounts;
use crate::mcp::source::config::{Limits, Reach};
use crate::mcp::source::connection::Connection;
use crate::mcp::source::definition::{Definition, Listed};
use crate::mcp::source::diagnostics::Diagnostics;
use crate::mcp::source::error::RequestError;
use crate::mcp::source::hints::Hints;
use crate::mcp::source::http::Http;
use crate::mcp::source::list::Listing;
use crate::mcp::source::stdio::Program;
use crate::tool::Hash;

/// The maximum number of earlier definitions that are remembered for one tool. A tool that has had so many is denied.
const MAX_DEFINITIONS: usize = 16;

/// The maximum number of tools whose definitions are remembered, which is more than a list may have. Tools of earlier
/// lists that never changed are forgotten first.
const MAX_TOOLS: usize = 20_000;

/// The state of one server.
pub(super) struct ServerState {
    pub(super) id: Arc<str>,
    pub(super) reach: Reach,
    pub(super) http: Option<Http>,
    pub(super) limits: Limits,
    pub(super) accounts: Accounts,
    pub(super) hints: Arc<Hints>,
    pub(super) diagnostics: Arc<Diagnostics>,
    /// How many times the state was written.
    pub(super) changes: Arc<AtomicU64>,
    /// Whether a catalog waits for the first list, so that a server that is down is tried again without a call.
    pub(super) is_awaited: AtomicBool,
    /// Fires when the connection must end, even in the middle of an operation.
    pub(super) closing: CancellationToken,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    connection: Option<Arc<Connection>>,
    tools: Vec<Arc<Listed>>,
    /// Whether a list was ever read.
    is_listed: bool,
    by_name: HashMap<String, usize>,
    histories: Histories,
    /// The reason why the server is down.
    down: Option<String>,
    /// The reason why its list was not read to the end.
    stopped: Option<String>,
}

/// The definitions that the tools have had, by the names of the tools.
struct Histories {
    by_name: HashMap<String, History>,
    /// The maximum number of tools that are remembered. A tool without a history is denied.
    max: usize,
}

impl Default for Histories {
    fn default() -> Self {
        Self { by_name: HashMap::new(), max: MAX_TOOLS }
    }
}

/// The definitions that a tool has had.
struct History {
    now: Hash,
    /// Definitions that the server replaced. If one returns, the server switches between definitions, so that a review
    /// of the latest one proves nothing.
    left: BTreeSet<Hash>,
}

impl ServerState {
    /// Connects to the server and agrees on a revision with it, within the connect timeout (twice that for a process
    /// that is started a second time).
    pub(super) async fn connect(&self) -> Result<Connection, RequestError> {
        let Reach::Command { program, args, env, folder } = &self.reach else {
            let http = self.http.as_ref().ok_or_else(|| RequestError::NotSent("the URL cannot be used".to_owned()))?;
            http.forget();
            return Connection::to_url(http.clone(), &self.limits).await;
        };
        let program = Program { path: program, args, env, folder: folder.as_ref() };
        Connection::to_program(&self.id, &program, &self.limits, &self.hints, &self.diagnostics).await
    }

    pub(super) fn new(id: Arc<str>, reach: Reach, http: Option<Http>, limits: Limits, hints: Arc<Hints>) -> Self {
        let diagnostics = Arc::new(Diagnostics::new(&reach));
        let (accounts, changes, known) = (Accounts::default(), Arc::default(), RwLock::default());
        let (is_awaited, closing) = (AtomicBool::new(false), CancellationToken::new());
        Self { id, reach, http, limits, accounts, hints, diagnostics, changes, is_awaited, closing, known }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        let known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Counted under the lock: a reader that sees the new count and then requests a pin waits for this write.
        self.changes.fetch_add(1, Ordering::Release);
        known
    }

    /// Returns the kind of connection that calls of the server's tools need; `None` if they need none.
    pub(super) const fn kind(&self) -> Option<&'static str> {
        if let Reach::Url { connection, .. } = &self.reach { *connection } else { None }
    }

    /// Returns the connection while it is open.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        self.read().connection.clone().filter(|connection| !connection.is_closed())
    }

    /// Marks the server as reachable through this connection.
    pub(super) fn up(&self, connection: Arc<Connection>) {
        let mut known = self.write();
        known.connection = Some(connection);
        known.down = None;
    }

    /// Marks the server as down. Returns its connection, which the caller must end.
    pub(super) fn down(&self, why: Option<String>) -> Option<Arc<Connection>> {
        let mut known = self.write();
        known.down = why;
        known.connection.take()
    }

    /// Replaces the list of tools.
    pub(super) fn apply(&self, listing: Listing) {
        let mut known = self.write();
        known.stopped = listing.stopped;
        known.is_listed = true;
        known.by_name.clear();
        known.tools = listing.tools.into_iter().map(Arc::new).collect();
        let tools = known.tools.clone();
        let admitted = tools.iter().enumerate().filter_map(|(at, one)| Some((at, one.admitted.as_ref().ok()?)));
        known.by_name.extend(admitted.clone().map(|(at, definition)| (definition.name.clone(), at)));
        let listed: Vec<_> = admitted.map(|(_, definition)| (definition.name.as_str(), definition.pin)).collect();
        for (tool, published) in known.histories.add(&listed) {
            tracing::warn!(server = &*self.id, tool, %published, "the server changed the definition of a tool");
        }
    }

    /// Returns the hash of a tool's definition; `None` for a tool that is not listed, is rejected, or has changed back
    /// and forth or too often.
    pub(super) fn pin(&self, name: &str) -> Option<Hash> {
        let known = self.read();
        let pin = known.definition(name)?.pin;
        (!known.histories.have_moved(name, pin)).then_some(pin)
    }

    /// Forgets the earlier definitions of a tool. Returns whether the server lists the tool.
    pub(super) fn review(&self, name: &str) -> bool {
        let mut known = self.write();
        let pin = known.definition(name).map(|definition| definition.pin);
        known.histories.review(name, pin);
        pin.is_some()
    }

    /// Returns all tools that the server lists. The flag of a tool is `true` if the tool changed back and forth, or too
    /// often.
    pub(super) fn tools(&self) -> Vec<(Arc<Listed>, bool)> {
        let known = self.read();
        let moved =
            |one: &Listed| one.admitted.as_ref().is_ok_and(|one| known.histories.have_moved(&one.name, one.pin));
        known.tools.iter().map(|one| (Arc::clone(one), moved(one))).collect()
    }

    /// Whether the server has ever listed its tools.
    pub(super) fn is_listed(&self) -> bool {
        self.read().is_listed
    }

    /// Returns a note about the server for operators, with its own last output; `None` if there is nothing to report.
    pub(super) fn note(&self) -> Option<String> {
        let stopped = || self.read().stopped.as_ref().map(|why| format!("its list was not read to the end: {why}"));
        self.is_down().map(|why| self.diagnostics.noted(format!("down: {why}"))).or_else(stopped)
    }

    /// Returns the reason why the server is down. `None` if it answers, or has had no request yet.
    pub(super) fn is_down(&self) -> Option<String> {
        self.read().down.clone()
    }
}

impl Known {
    /// Returns the definition of a listed tool; `None` for a rejected one.
    fn definition(&self, name: &str) -> Option<&Definition> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at))?.admitted.as_ref().ok()
    }
}

impl Histories {
    /// Adds the definitions of a list. Returns the definitions that replace an earlier one.
    fn add<'a>(&mut self, listed: &[(&'a str, Hash)]) -> Vec<(&'a str, Hash)> {
        if self.by_name.len() + listed.len() > self.max {
            let now: BTreeSet<_> = listed.iter().map(|(name, _)| *name).collect();
            // The history of a changed tool stays: a server could otherwise list other tools until it is dropped.
            self.by_name.retain(|name, history| now.contains(name.as_str()) || !history.left.is_empty());
        }
        let mut changed = Vec::new();
        for (name, pin) in listed {
            if self.by_name.len() >= self.max && !self.by_name.contains_key(*name) {
                continue;
            }
            let history = self.by_name.entry((*name).to_owned()).or_insert_with(|| History::new(*pin));
            if history.now != *pin {
                let before = std::mem::replace(&mut history.now, *pin);
                if history.left.len() < MAX_DEFINITIONS {
                    history.left.insert(before);
                }
                changed.push((*name, *pin));
            }
        }
        changed
    }

    /// Whether a tool with this definition changed back and forth, or too often to tell.
    fn have_moved(&self, name: &str, pin: Hash) -> bool {
        let history = self.by_name.get(name);
        history.is_none_or(|history| history.left.contains(&pin) || history.left.len() >= MAX_DEFINITIONS)
    }

    /// Forgets the earlier definitions of a tool. A listed tool without a history gets one.
    fn review(&mut self, name: &str, pin: Option<Hash>) {
        match (self.by_name.get_mut(name), pin) {
            (Some(history), _) => history.left.clear(),
            (None, Some(pin)) => {
                self.by_name.insert(name.to_owned(), History::new(pin));
            }
            (None, None) => {}
        }
    }
}

impl History {
    const fn new(now: Hash) -> Self {
        Self { now, left: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_make_its_client_forget_that_a_tool_switched() {
        let [a, b] = ["a", "b"].map(Hash::sha256);
        let mut histories = Histories { max: 8, ..Histories::default() };
        for pin in [a, b, a] {
            histories.add(&[("pay", pin)]);
        }
        assert!(histories.have_moved("pay", a));
        for round in 0..4 {
            let names: Vec<_> = (0..6).map(|at| format!("tool_{round}_{at}")).collect();
            histories.add(&names.iter().map(|name| (name.as_str(), a)).collect::<Vec<_>>());
        }
        histories.add(&[("pay", a)]);
        assert!(histories.have_moved("pay", a) && histories.by_name.len() <= 8);
        // Tools that switched definitions leave no room for another tool's history. A tool without a history is denied
        // until a person reviews it.
        for at in 0..16 {
            let name = format!("switched_{at}");
            for pin in [a, b] {
                histories.add(&[(&name, pin)]);
            }
        }
        histories.add(&[("new", a)]);
        assert!(histories.have_moved("new", a) && histories.have_moved("pay", a));
        assert_eq!(histories.by_name.len(), 8);
        histories.review("new", Some(a));
        assert!(!histories.have_moved("new", a));
    }

    /// A tool that changes at each list costs no more memory than one that changed a few times.
    #[test]
    fn the_definitions_of_a_tool_are_bounded() {
        let mut histories = Histories::default();
        for at in 0..100 {
            histories.add(&[("pay", Hash::sha256(at.to_string()))]);
        }
        assert_eq!(histories.by_name["pay"].left.len(), MAX_DEFINITIONS);
        assert!(histories.have_moved("pay", Hash::sha256("99")));
    }
}
