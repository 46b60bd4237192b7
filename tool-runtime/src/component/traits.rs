//! [`ToolComponent`]: the trait that an author implements for a struct tool.

use std::fmt;
use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;

use crate::capability::Capabilities;
use crate::component::list::CapabilityList;
use crate::component::{Call, Precondition, WithMedia};
use crate::error::ToolError;
use crate::media::Media;

/// The capabilities, the output and the code of a struct tool. [`#[tool]`](macro@crate::tool) on the `impl` block of
/// the struct generates the implementation.
///
/// The runner constructs the struct from validated arguments. Only the runner can make the [`Call`] that
/// [`run`](ToolComponent::run) takes, so no other code can run a tool.
///
/// ```
/// use tool_runtime::{Call, Cap, Connection, ToolComponent, ToolError, capability, tool};
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// trait Clock { fn now(&self) -> i64; }
///
/// /// A user's calendar.
/// #[capability(effect = read_only, kind = "calendar")]
/// trait Calendar { fn next(&self, after: i64) -> Option<String>; }
///
/// /// The next appointment.
/// #[tool(name = "calendar__next", effect = read_only, redact = ["$"])]
/// struct Next {
///     /// Skip this many seconds from now.
///     #[arg(default = 0)]
///     skip: i64,
/// }
///
/// // What `#[tool] impl Next { async fn run(self, clock: &dyn Clock, calendar: &Connection<dyn Calendar>) -> .. }` writes.
/// impl ToolComponent for Next {
///     type Capabilities = (Cap<dyn Clock>, Cap<Connection<dyn Calendar>>);
///     type Output = Option<String>;
///
///     async fn run(
///         self,
///         (clock, calendar): Self::Capabilities,
///         _: &Call<Self>,
///     ) -> Result<Self::Output, ToolError> {
///         Ok(calendar.next(clock.now() + self.skip))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the tool `{Self}` does not say how it runs",
    label = "has no `#[tool] impl {Self}`",
    note = "write `#[tool] impl {Self} {{ async fn run(self) -> Result<Output, ToolError> {{ .. }} }}`; behind `self` it may borrow capabilities and the call: `clock: &dyn Clock`, `call: &Call<Self>`"
)]
pub trait ToolComponent: Sized + Send + 'static {
    /// A tuple of at most eight [`Cap<dyn Trait>`](crate::Cap), `Cap<Connection<dyn Trait>>` and `Cap<ToolContext>`;
    /// `()` for none.
    type Capabilities: CapabilityList;
    /// The output, before redaction.
    type Output: ToolOutput;

    /// Runs the tool on its validated arguments.
    ///
    /// The future is dropped when the call times out or is cancelled.
    ///
    /// # Errors
    /// The tool's own error. The model reads its code and its safe sentence; only operators read its cause.
    fn run(
        self,
        capabilities: Self::Capabilities,
        call: &Call<Self>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Looks up the outcome of an earlier attempt at this call that began but recorded no end, for example because its
    /// process died. Query the outside system by the [idempotency key](crate::ToolContext::idempotency_key) or by the
    /// arguments.
    ///
    /// The earlier attempt may only be paused, and may continue after this look-up. It cannot write to the store,
    /// because it has lost its lease (the exclusive right to the call), but only the outside system can prevent its
    /// effect. The absence of an effect so far is therefore not enough. Return [`Reconciled::Prevented`] only if the
    /// tool has made the outside system refuse the idempotency key from now on, by cancelling it or by using it up. The
    /// key is the same for all attempts at the call.
    ///
    /// The answer must be about the idempotency key of this call. The runner cannot verify that; it records any answer
    /// as the end of this call.
    ///
    /// The runner calls this method whenever it continues a run: when the run gets the call again, in a restored
    /// conversation, when a worker or a durable executor takes over the run, and in
    /// [`ToolRunner::sweep`](crate::ToolRunner::sweep) for an approved call. It also calls the method before a new call
    /// with the same arguments as an earlier call whose outcome is unknown, unless more than one such earlier call
    /// blocks the new call. `call` is then the earlier call. Without this method, the outcome stays `outcome_unknown`.
    /// The runner runs an `idempotent` tool again instead.
    ///
    /// # Errors
    /// An error, a panic or a timeout leaves the outcome unknown. For a tool without a timeout, the limit is the
    /// duration of a lease ([`RunnerBuilder::lease`](crate::runner::RunnerBuilder::lease)).
    fn reconcile(
        self,
        capabilities: Self::Capabilities,
        call: &Call<Self>,
    ) -> impl Future<Output = Result<Reconciled<Self::Output>, ToolError>> + Send {
        let _ = (capabilities, call);
        async { Ok(Reconciled::Unknown) }
    }

    /// Returns statements about the state on which this call depends, for the person who decides on it.
    /// [`Precondition`] has an example.
    ///
    /// The method runs when the call begins to wait, and again before the approved call begins. If a statement differs,
    /// the approval does not count: the call waits with a new question, which shows both values. It does not run for a
    /// call that needs no approval or that a grant (a stored decision) permits. If the decider edits the arguments, the
    /// comparison still uses the arguments that were shown.
    ///
    /// The method can only read: `capabilities` holds those capabilities and connections of the tool whose effect is
    /// `read_only`. Get one with [`Capabilities::read`]. The state can still change between the last reading and the
    /// effect. If the outside system can refuse a stale request, for example by a version number, use that too.
    ///
    /// In a `#[tool] impl` block, write `async fn precondition(self, accounts: &dyn Accounts)`; it may also borrow
    /// `&ToolContext`. For a function, name an `async fn` in the attribute (`precondition = path`). By default there
    /// are no statements.
    ///
    /// # Errors
    /// If the method fails, panics or exceeds the timeout of the tool (the [lease](crate::runner::RunnerBuilder::lease)
    /// for a tool without one), a call that is about to wait ends, and an approved call waits again. Three approvals of
    /// a call may fail to count in this way; a fourth ends the call as `cancelled`, with the code `world_changed`.
    fn precondition(
        self,
        capabilities: Capabilities,
    ) -> impl Future<Output = Result<Precondition, ToolError>> + Send + 'static {
        let _ = capabilities;
        Precondition::silent()
    }
}

/// The outcome of a call whose end was not recorded, as [`ToolComponent::reconcile`] found it.
///
/// ```
/// use tool_runtime::{Call, Reconciled, ToolError, capability, tool};
///
/// /// Payments at a bank, which identifies each payment by a key of the caller.
/// #[capability(effect = external_side_effect)]
/// trait Bank {
///     fn pay(&self, key: &str, cents: u64) -> u64;
///     /// Returns the payment's number; `None` if there was none. From then on the bank refuses the key.
///     fn find_or_cancel(&self, key: &str) -> Option<u64>;
/// }
///
/// /// Pays.
/// #[tool(name = "bank__pay", effect = external_side_effect, redact = ["$"])]
/// struct Pay {
///     /// The amount in cents.
///     cents: u64,
/// }
///
/// #[tool]
/// impl Pay {
///     async fn run(self, bank: &dyn Bank, call: &Call<Self>) -> Result<u64, ToolError> {
///         Ok(bank.pay(&call.idempotency_key(), self.cents))
///     }
///
///     async fn reconcile(self, bank: &dyn Bank, call: &Call<Self>) -> Result<Reconciled<u64>, ToolError> {
///         let found = bank.find_or_cancel(&call.idempotency_key());
///         Ok(found.map_or(Reconciled::Prevented, Reconciled::TookEffect))
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reconciled<T> {
    /// The call took effect. It ends with this output.
    TookEffect(T),
    /// The call had no effect and cannot have one: the outside system refuses its idempotency key from now on. It ends
    /// as `cancelled`, and may be made again as a new call.
    Prevented,
    /// The outcome is unknown, or the call has had no effect yet but may still have one. It ends as `outcome_unknown`.
    Unknown,
}

// The output can hold data that its allowlist leaves out, so it is not printed.
impl<T> fmt::Debug for Reconciled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TookEffect(_) => "TookEffect(..)",
            Self::Prevented => "Prevented",
            Self::Unknown => "Unknown",
        })
    }
}

/// The output of a tool. Implemented for every owned type with `Serialize` and `JsonSchema`, and for [`WithMedia`] of
/// such a type.
///
/// ```
/// # use tool_runtime::ToolOutput;
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Task {
///     id: u64,
///     title: String,
/// }
///
/// fn is_output<T: ToolOutput>() {}
/// is_output::<Vec<Task>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of a tool",
    label = "not serialisable with a schema",
    note = "derive `serde::Serialize` and `JsonSchema` of schemars 1 for it and for the types of its fields; a type of another crate may need a feature of `schemars`; secrets and connections never leave a tool",
    note = "files accompany the whole output: return `WithMedia<Output>`, with no `WithMedia` inside"
)]
pub trait ToolOutput: Send + 'static {
    /// The part that is serialised.
    #[doc(hidden)]
    type Value: Serialize + JsonSchema + Send + 'static;

    /// Whether files may be attached to the value.
    #[doc(hidden)]
    const HAS_MEDIA: bool;

    /// Separates the value from the files.
    #[doc(hidden)]
    fn split(self) -> (Self::Value, Vec<Media>);
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for T {
    type Value = T;

    const HAS_MEDIA: bool = false;

    fn split(self) -> (T, Vec<Media>) {
        (self, Vec::new())
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + Send + 'static> ToolOutput for WithMedia<T> {
    type Value = T;

    const HAS_MEDIA: bool = true;

    fn split(self) -> (T, Vec<Media>) {
        self.into_parts()
    }
}
