//! [`ToolContext`]: the context of a call, for its tool. Only the runner creates it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::CallId;
use crate::capability::InjectedFrom;
use crate::capability::injected::{Directly, Injected};
use crate::tool::level::ReadOnly;
use crate::tool::{Digested, Hash, ToolName};

/// The context of a call: ids, deadline, cancellation, idempotency key.
///
/// A function tool takes a reference to it. A struct tool reaches it by way of its [`Call`](crate::Call), which derefs
/// to it:
///
/// ```
/// use tool_runtime::{ToolContext, ToolError, tool};
///
/// /// Sends a mail.
/// #[tool(name = "mail__send", effect = external_side_effect, redact = ["$"])]
/// async fn send(
///     context: &ToolContext,
///     /// The address.
///     to: String,
/// ) -> Result<String, ToolError> {
///     // The key is the same if the call is repeated, so the mail server sends the mail once.
///     Ok(format!("{to}: {}", context.idempotency_key()))
/// }
/// ```
pub struct ToolContext(ContextFields);

/// The call, its time limit and its cancellation. The ids are read through `call`, because copies of them would cost
/// every call an allocation and more reference counts.
struct ContextFields {
    call: Arc<dyn HydratedCall>,
    timeout: Option<Duration>,
    /// The cancellation token of the MCP client that made the call. It replaces the run's token.
    client: Option<Arc<CancellationToken>>,
}

/// The parts of a call that its context needs. The call's arguments have been read already.
pub(crate) trait HydratedCall: Digested {
    /// Returns the id of the call. The record has the same id; otherwise the call does not run.
    fn id(&self) -> &CallId;

    /// Returns the name of the called tool.
    fn tool_name(&self) -> &ToolName;

    /// Returns the fields of the call's run.
    fn run(&self) -> &RunFields;

    /// Returns the deadline and the cancellation of the call.
    fn ends(&self) -> &Ends;
}

/// The fields that all calls of a run share.
#[derive(Default)]
pub(crate) struct RunFields {
    pub(crate) run_id: Arc<str>,
    pub(crate) session_id: Option<Arc<str>>,
    pub(crate) conversation_id: Option<Arc<str>>,
    pub(crate) agent_id: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) cancellation: Arc<CancellationToken>,
}

/// The deadline and the cancellation token of a piece of work, created on first use. Most work is ready at once and
/// needs neither. A token costs an allocation and three locks, and a deadline reads the clock.
#[derive(Default)]
pub(crate) struct Ends {
    deadline: OnceLock<Option<Instant>>,
    token: OnceLock<CancellationToken>,
}

/// [`Ends`], with the values from which the deadline and the token are created.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    timeout: Option<Duration>,
    /// The token of the run or the client.
    parent: &'a CancellationToken,
    ends: &'a Ends,
}

impl<'a> Bounds<'a> {
    pub(crate) const fn new(timeout: Option<Duration>, parent: &'a CancellationToken, ends: &'a Ends) -> Self {
        Self { timeout, parent, ends }
    }

    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the deadline, which counts from the first use.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        *self.ends.deadline.get_or_init(|| Instant::now().checked_add(self.timeout?))
    }

    /// Returns the token that fires when the work must end.
    pub(crate) fn token(&self) -> &'a CancellationToken {
        self.ends.token.get_or_init(|| self.parent.child_token())
    }
}

/// Creates the context of a call with this time limit. `client` is the cancellation token of the MCP client that made
/// the call. It replaces the run's token.
///
/// Not an associated function, because the compiler would suggest it to tools that try to create a context.
pub(crate) fn context_of(
    call: Arc<dyn HydratedCall>,
    timeout: Option<Duration>,
    client: Option<Arc<CancellationToken>>,
) -> ToolContext {
    ToolContext(ContextFields { call, timeout, client })
}

impl ToolContext {
    /// Returns a second handle of the context, for a tool that borrows it.
    pub(crate) fn share(&self) -> Self {
        let ContextFields { call, timeout, client } = &self.0;
        context_of(Arc::clone(call), *timeout, client.clone())
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        self.0.call.id()
    }

    /// Returns the name of the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        self.0.call.tool_name()
    }

    /// Returns the id of the run that the call belongs to.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.0.call.run().run_id
    }

    /// Returns the session; `None` if the application named none.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.0.call.run().session_id.as_deref()
    }

    /// Returns the conversation; `None` if the application named none.
    #[must_use]
    pub fn conversation_id(&self) -> Option<&str> {
        self.0.call.run().conversation_id.as_deref()
    }

    /// Returns the agent; `None` if the application named none.
    #[must_use]
    pub fn agent_id(&self) -> Option<&str> {
        self.0.call.run().agent_id.as_deref()
    }

    /// Returns the tenant; `None` if the application named none.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.0.call.run().tenant.as_deref()
    }

    /// Returns the principal that the run acts for; `None` if the application named none.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.0.call.run().principal.as_deref()
    }

    /// Returns the time at which the runner stops waiting for the tool; `None` without a time limit. The limit counts
    /// from the first call of this method or the tool's first wait.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.bounds().deadline()
    }

    /// Returns the token that fires when the run or the MCP client of the call is cancelled, when the call's deadline
    /// has passed, or when the process loses its lease on the call. Blocking tools poll
    /// [`CancellationToken::is_cancelled`].
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        self.bounds().token()
    }

    pub(crate) fn bounds(&self) -> Bounds<'_> {
        let ContextFields { call, timeout, client } = &self.0;
        Bounds::new(*timeout, client.as_ref().unwrap_or(&call.run().cancellation), call.ends())
    }

    /// Returns an idempotency key for requests to other services: 64 hexadecimal digits.
    ///
    /// The key is the SHA-256 of tenant, principal, run, tool, call id and the arguments that the tool got. It stays
    /// the same when the call is resumed, retried or restored in another process. It differs for every other run and
    /// call, and for edited arguments. The call id alone would not suffice, because providers may count ids from 0 in
    /// every response.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.ledger_key().to_string()
    }

    /// Returns the call's key in the ledger, the store's list of calls with effects that began.
    pub(crate) fn ledger_key(&self) -> Hash {
        let party = (self.tenant(), self.principal());
        ledger_key(party, self.run_id(), self.tool(), self.call_id(), self.0.call.effective_digest())
    }

    /// Writes an operational event to the `tracing` subscriber, with the ids of the call. Do not put values of
    /// arguments or outputs into `pairs`.
    pub fn event(&self, level: tracing::Level, name: &str, pairs: &[(&str, &str)]) {
        let (tool, run, call) = (self.tool(), self.run_id(), self.call_id());
        let conversation = self.conversation_id();
        let session = self.session_id();
        macro_rules! emit {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    event = name,
                    tool = tool.as_str(),
                    run,
                    call = call.as_str(),
                    session,
                    conversation,
                    ?pairs
                )
            };
        }
        match level {
            tracing::Level::ERROR => emit!(tracing::Level::ERROR),
            tracing::Level::WARN => emit!(tracing::Level::WARN),
            tracing::Level::INFO => emit!(tracing::Level::INFO),
            tracing::Level::DEBUG => emit!(tracing::Level::DEBUG),
            tracing::Level::TRACE => emit!(tracing::Level::TRACE),
        }
    }
}

/// Returns the key in the ledger for a call of a tenant and a principal whose effective arguments have this digest.
pub(crate) fn ledger_key(
    (tenant, principal): (Option<&str>, Option<&str>),
    run_id: &str,
    tool: &ToolName,
    call_id: &CallId,
    arguments: Hash,
) -> Hash {
    let mut text = Vec::with_capacity(256);
    // Each part follows its length, so that different lists never give the same bytes; `None` differs from empty.
    for part in [tenant, principal, Some(run_id), Some(tool.as_str()), Some(call_id.as_str())] {
        text.extend_from_slice(&part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
        text.extend_from_slice(part.unwrap_or_default().as_bytes());
    }
    text.extend_from_slice(&arguments.0);
    Hash::sha256(text)
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool", self.tool())
            .field("call_id", self.call_id())
            .finish_non_exhaustive()
    }
}

impl Injected for ToolContext {
    type Effect = ReadOnly;
    type Borrowing = Directly;
    const NAME: &'static str = "ToolContext";

    fn source() -> InjectedFrom {
        InjectedFrom::Context
    }
}
