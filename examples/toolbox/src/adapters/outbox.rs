//! The outbox folder, a maildir: a mail is written to `tmp` and then moved to `new`.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use lettre::message::Mailbox;
use office_tools::Failure;
use office_tools::mail::{Mail, Mailer};

use crate::adapters::{blocking, mail, unavailable};

/// The outbox folder.
pub(crate) struct Outbox {
    path: PathBuf,
    from: Mailbox,
}

impl Outbox {
    /// Opens the folder and creates it if necessary.
    pub(crate) fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        for part in ["tmp", "new", "cur"] {
            std::fs::create_dir_all(path.join(part))?;
        }
        Ok(Self { path: path.to_owned(), from: "toolbox@example.com".parse()? })
    }

    /// Lists the queued mails, one line each.
    pub(crate) fn describe(path: &Path) -> Result<Vec<String>, std::io::Error> {
        let folder = path.join("new");
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let names = std::fs::read_dir(folder)?.map(|entry| {
            let entry = entry?;
            Ok(format!("mail {}  {} bytes", entry.file_name().to_string_lossy(), entry.metadata()?.len()))
        });
        names.collect()
    }
}

#[async_trait]
impl Mailer for Outbox {
    async fn send(&self, outgoing: &Mail, key: &str) -> Result<(), Failure> {
        let message = mail::message(&self.from, outgoing, key)?;
        // The name comes from the call, so a repeated call replaces its mail.
        let name = mail::name(key);
        let (written, sent) = (self.path.join("tmp").join(&name), self.path.join("new").join(&name));
        blocking(move || {
            std::fs::write(&written, message.formatted()).map_err(unavailable)?;
            std::fs::rename(&written, &sent).map_err(unavailable)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::mail::name as mail_name;

    #[tokio::test]
    async fn a_mail_is_one_file_and_its_headers_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        let mail = Mail {
            to: vec!["carol@example.com".into()],
            subject: "Lunch\r\nBcc: eve@example.com".into(),
            body: "At noon, caf\u{e9}.\r\n.\r\nFrom me".into(),
        };
        outbox.send(&mail, "call_1-abc").await.unwrap();
        outbox.send(&mail, "call_1-abc").await.unwrap();
        assert_eq!(Outbox::describe(folder.path()).unwrap().len(), 1);
        let text = std::fs::read_to_string(folder.path().join("new").join(mail_name("call_1-abc"))).unwrap();
        assert!(text.contains("Content-Type: text/plain; charset=utf-8"), "{text}");
        outbox.send(&mail, "call-1_abc").await.unwrap();
        outbox.send(&mail, &format!("../\r\nBcc: eve@example.com{}", "x".repeat(500))).await.unwrap();
        assert_eq!(Outbox::describe(folder.path()).unwrap().len(), 3);
        for entry in std::fs::read_dir(folder.path().join("new")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.lines().any(|line| line.starts_with("Bcc:")), "{text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("Bcc:")), "{text}");
        let wrong = Mail { to: vec!["no address".into()], subject: String::new(), body: String::new() };
        assert!(matches!(outbox.send(&wrong, "k").await, Err(Failure::Forbidden)));
    }
}
