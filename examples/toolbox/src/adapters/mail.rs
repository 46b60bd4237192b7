//! Sends e-mail through SMTP if the data folder has a `smtp.toml`; otherwise writes it to the outbox folder.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport};
use office_tools::Failure;
use office_tools::mail::{Mail, Mailer};
use serde::Deserialize;
use tool_runtime::Secret;
use uuid::Uuid;

use crate::adapters::outbox::Outbox;
use crate::adapters::{blocking, unavailable};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The contents of `smtp.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Smtp {
    host: String,
    /// 465 by default; port 587 uses STARTTLS. The connection is always encrypted.
    port: Option<u16>,
    user: String,
    password: String,
    from: String,
}

/// Opens the mailer that the data folder configures.
pub(crate) fn open(data: &Path) -> Result<Arc<dyn Mailer>, Error> {
    let path = data.join("smtp.toml");
    if !path.exists() {
        return Ok(Arc::new(Outbox::open(&data.join("outbox"))?));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("smtp.toml cannot be read: {error}"))?;
    let smtp = settings(&text)?;
    let password = Secret::new(smtp.password);
    let relay = match smtp.port {
        Some(587) => SmtpTransport::starttls_relay(&smtp.host),
        Some(port) => SmtpTransport::relay(&smtp.host).map(|relay| relay.port(port)),
        None => SmtpTransport::relay(&smtp.host),
    };
    let transport = relay
        .map_err(|error| format!("smtp.toml: host cannot be used: {error}"))?
        .credentials(Credentials::new(smtp.user, password.expose().clone()))
        .timeout(Some(std::time::Duration::from_secs(20)))
        .build();
    Ok(Arc::new(Relay { transport, from: smtp.from.parse().map_err(|_| "smtp.toml: from is not an e-mail address")? }))
}

fn settings(text: &str) -> Result<Smtp, String> {
    toml::from_str(text).map_err(|error| {
        // A TOML error can quote the password, so the message has only the line.
        let start = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        format!("smtp.toml: line {line} is wrong; it needs host, user, password and from, all text, and may have port")
    })
}

/// Returns the name of the mail of a call. Equal keys have equal names, which are valid in a header and as file names.
pub(crate) fn name(key: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_bytes()).to_string()
}

/// Builds the message. The library encodes headers, so that no text can add one.
pub(crate) fn message(from: &Mailbox, mail: &Mail, key: &str) -> Result<Message, Failure> {
    let mut message = Message::builder()
        .from(from.clone())
        .subject(mail.subject.clone())
        // A repeated call has the same id, so that mail systems recognise the duplicate.
        .message_id(Some(format!("<{}@toolbox.invalid>", name(key))));
    for address in &mail.to {
        message = message.to(address.parse().map_err(|_| Failure::Forbidden)?);
    }
    message.singlepart(SinglePart::plain(mail.body.clone())).map_err(unavailable)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_does_not_show_the_password() {
        for text in ["host = 'h'\npassword = 123456", "password = 'hunter2", "password = { a = 'hunter2' }"] {
            let error = settings(text).err().unwrap();
            assert!(!error.contains("123456") && !error.contains("hunter2"), "{error}");
        }
        assert!(settings("host = 'h'\npassword = 123456").err().unwrap().contains("line 2"));
        let right = "host = 'h'\nport = 587\nuser = 'u'\npassword = 'p'\nfrom = 'a@example.com'";
        assert_eq!(settings(right).unwrap().port, Some(587));
    }
}
