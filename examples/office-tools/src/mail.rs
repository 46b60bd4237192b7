//! E-mail.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{ToolError, capability, tool};

use crate::Failure;

/// Sends e-mail, which cannot be undone.
#[capability(effect = external_side_effect)]
#[async_trait]
pub trait Mailer {
    /// Sends a mail or queues it. A repeated call has the same `key`, so that the mail is sent once.
    async fn send(&self, mail: &Mail, key: &str) -> Result<(), Failure>;
}

/// An e-mail.
#[derive(Debug)]
pub struct Mail {
    /// The addresses.
    pub to: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The text.
    pub body: String,
}

/// An e-mail address.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("format" = "email"))]
pub struct Address(String);

/// The result of sending.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sent {
    /// Whether it was queued.
    pub queued: bool,
    /// The number of recipients.
    pub recipients: usize,
}

/// Send an e-mail. Leaves the system: cannot be undone.
#[tool(
    name = "mail__send_email",
    effect = external_side_effect,
    redact = ["queued", "recipients"],
    summary = "Sends an e-mail about {subject} to {to}",
    tags = ["mail"],
    timeout = "30s"
)]
pub async fn send_email(
    mailer: &dyn Mailer,
    ctx: &tool_runtime::ToolContext,
    /// The recipients.
    #[schemars(length(min = 1, max = 10))]
    to: Vec<Address>,
    /// The subject.
    subject: String,
    /// The text.
    #[arg(sensitive)]
    body: String,
) -> Result<Sent, ToolError> {
    let to: Vec<_> = to.into_iter().map(|address| address.0).collect();
    let recipients = to.len();
    let mail = Mail { to, subject, body };
    mailer.send(&mail, &ctx.idempotency_key()).await.map_err(|failure| failure.of("mail server"))?;
    Ok(Sent { queued: true, recipients })
}
