//! E-mail: into the outbox folder, or through SMTP when `smtp.toml` stands in the data folder.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport};
use office_tools::Failure;
use office_tools::mail::{Mail, Mailer};
use serde::Deserialize;
use tool_runtime::Secret;

use crate::adapters::outbox::Outbox;
use crate::adapters::{blocking, unavailable};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// `smtp.toml`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Smtp {
    host: String,
    user: String,
    password: String,
    from: String,
}

/// The mailer that the data folder asks for.
pub(crate) fn open(data: &Path) -> Result<Arc<dyn Mailer>, Error> {
    let path = data.join("smtp.toml");
    if !path.exists() {
        return Ok(Arc::new(Outbox::open(&data.join("outbox"))?));
    }
    let smtp: Smtp = toml::from_str(&std::fs::read_to_string(&path)?).map_err(|error| {
        // The text of a TOML error quotes the line, and the line may be the password.
        format!("smtp.toml: {}; it needs host, user, password and from", error.message())
    })?;
    let password = Secret::new(smtp.password);
    let transport = SmtpTransport::relay(&smtp.host)?
        .credentials(Credentials::new(smtp.user, password.expose().clone()))
        .timeout(Some(std::time::Duration::from_secs(20)))
        .build();
    Ok(Arc::new(Relay { transport, from: smtp.from.parse()? }))
}

/// Builds the message; headers are encoded by the library, so no text can add one.
pub(crate) fn message(from: &Mailbox, mail: &Mail, key: &str) -> Result<Message, Failure> {
    let mut message = Message::builder()
        .from(from.clone())
        .subject(mail.subject.clone())
        // The same call has the same id, so that a repeated one can be told from a second mail.
        .message_id(Some(format!("<{key}@toolbox.invalid>")));
    for address in &mail.to {
        message = message.to(address.parse().map_err(|_| Failure::Forbidden)?);
    }
    message.body(mail.body.clone()).map_err(unavailable)
}

/// An SMTP server.
struct Relay {
    transport: SmtpTransport,
    from: Mailbox,
}

#[async_trait]
impl Mailer for Relay {
    async fn send(&self, mail: &Mail, key: &str) -> Result<(), Failure> {
        let message = message(&self.from, mail, key)?;
        let transport = self.transport.clone();
        blocking(move || transport.send(&message).map(|_| ()).map_err(unavailable)).await
    }
}
