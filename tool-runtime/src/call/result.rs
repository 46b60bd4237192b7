//! [`ToolExecResult`]: the runner's result for one call.

mod document;

use std::fmt;
use std::sync::Arc;

use crate::call::{ArgumentChange, CallId, Intervention, JsonText, Outcome, Question, SafeError};
use crate::media::{Attachments, LeftOut, Media};

/// The result of one call: a value after redaction, a safe error, or the reason why the call waits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # use tool_runtime::{Outcome, ToolCall, ToolCatalog, ToolError, testing, tool};
/// # /// Adds.
/// # #[tool(name = "math__add", effect = read_only, redact = ["$"])]
/// # fn add(
/// #     /// One.
/// #     a: i64,
/// #     /// Another.
/// #     b: i64,
/// # ) -> Result<i64, ToolError> { Ok(a + b) }
/// let catalog = ToolCatalog::builder().tool::<add>().build()?;
/// let harness = testing::harness(catalog);
/// let result = harness.run().exec(ToolCall::text("c1", "math__add", r#"{"a":2,"b":3}"#)).await;
/// assert_eq!(result.outcome(), Outcome::Ok);
/// assert_eq!(result.to_model(), "5");
///
/// let result = harness.run().exec(ToolCall::text("c2", "math__add", r#"{"a":2}"#)).await;
/// assert_eq!(result.error().map(|error| error.errors.len()), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ToolExecResult {
    call_id: CallId,
    executed: bool,
    intervention: Option<Box<Intervention>>,
    body: Body,
}

/// An enum, so that every result has exactly one of a value, a suspension and a failure.
#[derive(Clone)]
enum Body {
    Delivered(Delivered),
    Suspended(Box<Suspended>),
    Failed(Box<Failed>),
}

/// A call that waits.
#[derive(Clone)]
struct Suspended {
    error: SafeError,
    prepared: Option<JsonText>,
    question: Question,
    /// The number of approvals so far, and the required number. `None` unless this is the result of an approval and the
    /// call needs several.
    approvals: Option<(u32, u32)>,
}

/// A projected value: the parts of a tool's output that its allowlist (`redact`) names.
#[derive(Clone)]
pub(crate) struct Delivered {
    /// The value for UIs, telemetry and records.
    pub(crate) shown: JsonText,
    /// The value for the model, if it differs: it has more of the output, or marks where something was left out.
    pub(crate) model: Option<JsonText>,
    /// An additional sentence for the model.
    pub(crate) warning: Option<&'static str>,
    /// The files attached to the value, and the counts of omitted items and bytes. `None` if there are none.
    pub(crate) attachments: Option<Box<Attachments>>,
}

#[derive(Clone)]
pub(crate) struct Failed {
    pub(crate) error: SafeError,
    /// Whether the model was never offered the tool. It then reads the same refusal as for an unknown name.
    pub(crate) concealed: bool,
    /// The cause, for operators. It can contain values, so no log, record or event has it.
    pub(crate) detail: Option<Arc<str>>,
}

impl ToolExecResult {
    pub(crate) const fn delivered(call_id: CallId, executed: bool, delivered: Delivered) -> Self {
        Self { call_id, executed, intervention: None, body: Body::Delivered(delivered) }
    }

    pub(crate) fn failed(call_id: CallId, executed: bool, failed: Failed) -> Self {
        Self { call_id, executed, intervention: None, body: Body::Failed(Box::new(failed)) }
    }

    /// Adds a person's change to the call.
    #[inline]
    pub(crate) fn with_intervention(mut self, intervention: Option<Box<Intervention>>) -> Self {
        self.intervention = intervention;
        self
    }

    /// Creates a failure of this outcome, described by one sentence.
    pub(crate) fn unfinished(call_id: CallId, outcome: Outcome, executed: bool, message: &str) -> Self {
        let error = SafeError::new(outcome, message);
        Self::failed(call_id, executed, Failed { error, concealed: false, detail: None })
    }

    /// Creates the result of a waiting call. `outcome` is one of the two suspensions. `prepared` is the payload of a
    /// client tool.
    pub(crate) fn suspended(call_id: CallId, outcome: Outcome, prepared: Option<JsonText>, question: Question) -> Self {
        let error = SafeError::new(outcome, outcome.safe_message());
        let executed = outcome == Outcome::ClientRequired;
        let suspended = Suspended { error, prepared, question, approvals: None };
        Self { call_id, executed, intervention: None, body: Body::Suspended(Box::new(suspended)) }
    }

    /// Creates the result of an approval whose call needs more approvals.
    pub(crate) fn noted(question: Question, approvals: (u32, u32)) -> Self {
        let (given, required) = approvals;
        let message = format!("{given} of {required} approvals are noted. The call still waits.");
        let error = SafeError::new(Outcome::ApprovalRequired, &message);
        let call_id = question.call_id().clone();
        let suspended = Suspended { error, prepared: None, question, approvals: Some(approvals) };
        Self { call_id, executed: false, intervention: None, body: Body::Suspended(Box::new(suspended)) }
    }

    /// Returns the id of the call.
    #[must_use]
    pub const fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Returns the end of the call, or the reason why it waits.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match &self.body {
            Body::Delivered(_) => Outcome::Ok,
            Body::Suspended(waits) => waits.error.error_code,
            Body::Failed(failed) => failed.error.error_code,
        }
    }

    /// Returns the question that a decision on the waiting call must answer. `None` for every other result.
    #[must_use]
    pub fn question(&self) -> Option<&Question> {
        match &self.body {
            Body::Suspended(waits) => Some(&waits.question),
            Body::Delivered(_) | Body::Failed(_) => None,
        }
    }

    /// Returns the number of approvals so far and the required number, for the result of an approval whose call needs
    /// more approvals. `None` for every other result.
    #[must_use]
    pub fn approvals(&self) -> Option<(u32, u32)> {
        match &self.body {
            Body::Suspended(waits) => waits.approvals,
            Body::Delivered(_) | Body::Failed(_) => None,
        }
    }

    /// Whether the outcome is [`Outcome::Ok`].
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        matches!(self.body, Body::Delivered(_))
    }

    /// Whether the tool began to run. For a call that waits for its client, this means the tool's own part, which
    /// prepared [`value`](Self::value).
    #[must_use]
    pub const fn executed(&self) -> bool {
        self.executed
    }

    /// Returns the arguments that a person changed before the tool ran; at most 64 are listed, and sensitive values are
    /// masked. Empty if no argument was changed. The model reads the changes with the result. The call in the history
    /// stays as the model wrote it, because providers sign it.
    #[must_use]
    pub fn edits(&self) -> &[ArgumentChange] {
        self.intervention.as_deref().map_or(&[], Intervention::edits)
    }

    /// Whether a person supplied the value in place of the tool. The model reads a sentence about this with the result.
    ///
    /// ```
    /// use tool_runtime::ToolExecResult;
    ///
    /// let read = r#"{"toolCallId":"c1","ok":true,"outcome":"ok","value":3,"executed":false,"intervention":"answered"}"#;
    /// let result: ToolExecResult = serde_json::from_str(read)?;
    /// assert!(result.is_answered() && result.edits().is_empty());
    /// assert_eq!(result.to_model(), "3\n\nThe tool did not run: a person provided this result instead.");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.intervention.as_deref(), Some(Intervention::Answered))
    }

    /// Returns the run and the id of an earlier call that already had the same effect. This result is the result of
    /// that call, and the tool did not run again. The model reads a sentence about this with the result. `None` for
    /// every other result.
    #[must_use]
    pub fn earlier_call(&self) -> Option<(&str, &CallId)> {
        self.intervention.as_deref().and_then(Intervention::earlier)
    }

    /// Returns the sentence about the intervention, for the model. `None` for a failed call that did not run.
    #[inline]
    pub(crate) fn remark(&self) -> Option<String> {
        self.intervention.as_deref().filter(|_| self.is_ok() || self.executed).map(Intervention::sentence)
    }

    /// Returns the projected value as JSON, for UIs, telemetry and records. For a suspended client call this is the
    /// payload that the client executes. `None` for failures and for calls that wait for an approval.
    #[must_use]
    pub const fn value(&self) -> Option<&JsonText> {
        match &self.body {
            Body::Delivered(delivered) => Some(&delivered.shown),
            Body::Suspended(waits) => waits.prepared.as_ref(),
            Body::Failed(_) => None,
        }
    }

    /// Returns the delivered value; `None` unless the outcome is [`Outcome::Ok`].
    pub(crate) const fn as_delivered(&self) -> Option<&Delivered> {
        if let Body::Delivered(delivered) = &self.body { Some(delivered) } else { None }
    }

    /// Returns the images and files that are attached to the value for the model, if the tool's allowlist has `$media`.
    /// They are not part of the serialised result.
    #[must_use]
    pub fn media(&self) -> &[Media] {
        self.attachments().map_or(&[], |attachments| &attachments.media)
    }

    /// Returns the counts of output that was omitted to keep [`value`](Self::value) within the tool's limit. The value
    /// itself has no mark of the omission, and still matches the output schema.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.attachments().map_or_else(LeftOut::default, |attachments| attachments.left_out)
    }

    fn attachments(&self) -> Option<&Attachments> {
        self.as_delivered()?.attachments.as_deref()
    }

    /// Returns the files that UIs may show.
    pub(crate) fn shown_media(&self) -> &[Media] {
        self.attachments().filter(|attachments| attachments.is_shown).map_or(&[], |attachments| &attachments.media)
    }

    /// Returns the notes on a value for all its readers: a person's change, missing files, omitted items, and a
    /// warning.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> {
        let note = self.attachments().map(|attachments| attachments.note().trim().to_owned());
        let warning = self.as_delivered().and_then(|delivered| delivered.warning).map(str::to_owned);
        let remarks = [self.remark(), note, warning, Some(self.left_out().note())].into_iter().flatten();
        remarks.filter(|remark| !remark.is_empty())
    }

    /// Whether the caller was never offered the tool.
    #[cfg(feature = "mcp-server")]
    pub(crate) const fn is_concealed(&self) -> bool {
        matches!(&self.body, Body::Failed(failed) if failed.concealed)
    }

    /// Returns the error, or the reason why the call waits, safe for a model. `None` if the outcome is [`Outcome::Ok`].
    #[must_use]
    pub const fn error(&self) -> Option<&SafeError> {
        match &self.body {
            Body::Delivered(_) => None,
            Body::Suspended(waits) => Some(&waits.error),
            Body::Failed(failed) => Some(&failed.error),
        }
    }

    /// Returns the cause of the failure, for operators: the text of the tool's own error with its causes, or the reason
    /// why a connection was not available. `None` if it would only repeat [`error`](Self::error).
    ///
    /// The text can contain values, so no record, event, span or log has it. The application decides who may read it.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match &self.body {
            Body::Failed(failed) => failed.detail.as_deref(),
            Body::Delivered(_) | Body::Suspended(_) => None,
        }
    }

    /// Returns the text that goes back to the model: the value as JSON after redaction (a string without its quotes),
    /// or `{"ok":false,"errorCode","toolCode"?,"message","executed"?,"errors"?,"note"?}`. If a person changed the
    /// arguments or supplied the value, or an earlier call already had the effect, a sentence states this: after the
    /// value, or as the `note` of a failure.
    #[must_use]
    pub fn to_model(&self) -> String {
        let remark = self.remark();
        let failed = |error: &SafeError, code| error.to_model(code, self.executed, remark.as_deref());
        match &self.body {
            Body::Delivered(delivered) => delivered.to_model(remark.as_deref()),
            Body::Suspended(waits) => failed(&waits.error, waits.error.error_code),
            Body::Failed(refused) if refused.concealed => failed(&refused.error, Outcome::Unavailable),
            Body::Failed(refused) => failed(&refused.error, refused.error.error_code),
        }
    }

    /// Returns the text of [`to_model`](Self::to_model) followed by the result's files in words, for clients whose
    /// results are text only: a text file as it is, any other file as a sentence with its type and size.
    ///
    /// ```
    /// use tool_runtime::media::Media;
    /// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, WithMedia, tool};
    ///
    /// /// Reads the log.
    /// #[tool(name = "logs__read", effect = read_only, redact = ["$", "$media"])]
    /// fn read() -> Result<WithMedia<u32>, ToolError> {
    ///     Ok(WithMedia::new(1).media(Media::bytes("text/plain", b"line 1")?.with_name("log.txt")))
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let catalog = ToolCatalog::builder().tool::<read>().build()?;
    /// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["logs__read"])).build()?;
    /// let result = runner.run(RunOptions::new()).exec(ToolCall::text("c1", "logs__read", "{}")).await;
    /// assert_eq!(result.to_model_text(), "1\n\nlog.txt:\n\nline 1");
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn to_model_text(&self) -> String {
        let mut text = self.to_model();
        for media in self.media() {
            text.push_str("\n\n");
            text.push_str(&media.in_words());
        }
        text
    }
}

impl Delivered {
    /// Creates a value that is the same for all readers, without attachments.
    pub(crate) const fn shown(shown: JsonText) -> Self {
        Self { shown, model: None, warning: None, attachments: None }
    }

    fn to_model(&self, remark: Option<&str>) -> String {
        let value = self.model.as_ref().unwrap_or(&self.shown);
        let text = value.get();
        // Only a string begins with a quote: raw values have no white space around them.
        let bare = text.starts_with('"').then(|| serde_json::from_str::<String>(text).ok()).flatten();
        let mut text = bare.unwrap_or_else(|| text.to_owned());
        if let Some(attachments) = &self.attachments {
            text.push_str(&attachments.note());
            // A value that was read from a record has no marks where something was left out, so add a note.
            if self.model.is_none() && !attachments.left_out.is_none() {
                text.push_str("\n\n");
                text.push_str(&attachments.left_out.note());
            }
        }
        if let Some(remark) = remark {
            text.extend(["\n\n", remark]);
        }
        if let Some(warning) = self.warning {
            text.extend(["\n\n", warning]);
        }
        text
    }
}

// Data that only the model or only operators may read stays out.
impl fmt::Debug for ToolExecResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolExecResult")
            .field("call_id", &self.call_id)
            .field("outcome", &self.outcome())
            .field("executed", &self.executed)
            .field("value", &self.value())
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}
