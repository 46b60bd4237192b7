//! [`Precondition`]: statements of a tool about the state on which its call depends.

use std::any::TypeId;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::capability::Capabilities;
use crate::error::ToolError;

/// Statements about the state on which a call depends. Each has a name and a value, such as the balance that a refund
/// reduces.
///
/// The person who decides on the call reads the statements. The runner obtains them again before the approved call
/// begins. If one of them differs, the approval does not count, and a new question shows both values. State only values
/// on which the decision depends. A value that always changes, such as the time, would invalidate every approval.
///
/// A call has at most 8 statements; with more, the precondition fails. The person reads up to 64 characters of a name
/// and 80 of a value; values are compared as a whole. If the call has sensitive arguments, a name or a value is masked
/// if it contains the value of one of them, or the name of a member in such a value that the schema does not declare,
/// or if it is longer than 16 KiB. A sensitive value of fewer than four characters is recognised only as a separate
/// word. Another form of the value, such as a rounded number, is not recognised.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::{Capabilities, Precondition, ToolCatalog, ToolEffect, ToolError, ToolPolicy, capability, testing, tool};
///
/// /// Reads accounts.
/// #[capability(effect = read_only)]
/// trait Accounts { fn balance(&self, account: &str) -> i64; }
///
/// /// Pays out.
/// #[capability(effect = external_side_effect)]
/// trait Payments { fn pay(&self, account: &str, cents: i64); }
///
/// /// Pays an account out.
/// #[tool(name = "bank__pay_out", effect = external_side_effect, redact = ["$"], summary = "Pays {cents} to {account}")]
/// struct PayOut {
///     /// The account.
///     account: String,
///     /// How much.
///     cents: i64,
/// }
///
/// #[tool]
/// impl PayOut {
///     async fn run(self, payments: &dyn Payments) -> Result<i64, ToolError> {
///         payments.pay(&self.account, self.cents);
///         Ok(self.cents)
///     }
///
///     async fn precondition(self, accounts: &dyn Accounts) -> Result<Precondition, ToolError> {
///         Ok(Precondition::of("balance", accounts.balance(&self.account)))
///     }
/// }
///
/// struct Bank;
/// impl Accounts for Bank { fn balance(&self, _: &str) -> i64 { 120 } }
/// impl Payments for Bank { fn pay(&self, _: &str, _: i64) {} }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::allow(["bank__pay_out"]).with_approval_for_effects([ToolEffect::ExternalSideEffect]);
/// let bank = Arc::new(Bank);
/// let capabilities = Capabilities::new().with::<dyn Accounts>(bank.clone()).with::<dyn Payments>(bank);
/// let harness = testing::harness(ToolCatalog::builder().tool::<PayOut>().build()?).policy(policy);
/// let harness = harness.capabilities(capabilities);
/// harness.call("bank__pay_out", serde_json::json!({"account": "ada", "cents": 50})).await;
///
/// let waiting = harness.runner().store().pending_calls(&Default::default()).await?;
/// let asked = waiting[0].as_ref().ok().and_then(|call| call.summary.as_deref());
/// assert_eq!(asked, Some("Pays 50 to “ada”. This call depends on: “balance” is “120”."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Precondition {
    stated: Vec<(String, String)>,
}

/// The future of the default precondition. Other crates cannot create it, so its type identifies a tool without a
/// precondition.
struct Silent;

impl Future for Silent {
    type Output = Result<Precondition, ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(Precondition::default()))
    }
}

impl Precondition {
    /// The maximum number of statements of one call.
    pub(crate) const MAX_STATEMENTS: usize = 8;

    /// Creates a precondition with one statement.
    pub fn of(name: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::default().and(name, value)
    }

    /// Adds a statement.
    pub fn and(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.stated.push((name.into(), value.to_string()));
        self
    }

    /// Returns the statements.
    pub(crate) fn stated(&self) -> &[(String, String)] {
        &self.stated
    }

    /// Returns the future of the default precondition.
    pub(crate) fn silent() -> impl Future<Output = Result<Self, ToolError>> + Send + 'static {
        Silent
    }

    /// Whether the `precondition` method of a tool is the default one. The method is not called.
    pub(crate) fn is_silent<T, F: 'static>(_method: impl FnOnce(T, Capabilities) -> F) -> bool {
        TypeId::of::<F>() == TypeId::of::<Silent>()
    }
}

// Statements stay out of logs.
impl fmt::Debug for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stated.iter().map(|(name, _)| name)).finish()
    }
}
