//! [`Person`]: the authenticated person of a request.

use std::collections::HashMap;
use std::sync::Arc;

use tool_runtime::RunOptions;
use tool_runtime::call::Decider;

use crate::Error;

/// The tenant of a token that names none. Runs and deciders of this service always have a tenant.
pub const TENANT: &str = "acme";

/// A person with their tenant. It makes both the options of their runs and the decider of their decisions, so these
/// never name different tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name, which is the principal of their runs.
    pub name: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
}

impl Person {
    /// Creates a person of a tenant.
    pub fn new(name: impl Into<Arc<str>>, tenant: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), tenant: tenant.into() }
    }

    /// The options of this person's runs.
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions::new().principal(Arc::clone(&self.name)).tenant(Arc::clone(&self.tenant))
    }

    /// The decider of this person's decisions.
    pub(crate) fn decider(&self) -> Decider {
        Decider::new(Arc::clone(&self.name)).tenant(Arc::clone(&self.tenant))
    }

    /// Returns the id of the run of a chat. It contains the person, because two people may choose the same chat id.
    pub(crate) fn run_id(&self, chat: &str) -> String {
        [&*self.tenant, &self.name, chat].map(escaped).join(".")
    }
}

/// Escapes every byte except letters, digits, `-` and `_`, so that a dot can separate two names.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'_' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Parses the tokens of the people: `TOKEN=NAME` or `TOKEN=NAME@TENANT`, separated by commas.
///
/// # Errors
/// The text has another form.
pub fn people(text: &str) -> Result<HashMap<String, Person>, Error> {
    let pair = |pair: &str| {
        let (token, named) = pair.split_once('=').ok_or("CHAT_TOKENS is TOKEN=NAME@TENANT,..")?;
        let (name, tenant) = named.split_once('@').unwrap_or((named, TENANT));
        Ok((token.to_owned(), Person::new(name, tenant)))
    };
    text.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_chats_share_a_run() {
        let run = |name: &str, tenant: &str, chat: &str| Person::new(name, tenant).run_id(chat);
        assert_eq!(run("ada", "acme", "chat-1"), "acme.ada.chat-1");
        assert_ne!(run("ada.b", "acme", "c"), run("ada", "acme", "b.c"));
        assert_ne!(run("ada", "acme", "%2E"), run("ada", "acme", "."));
    }

    #[test]
    fn tokens_name_people_and_tenants() {
        let people = people("t=ada,u=bob@other").expect("two people");
        assert_eq!(people["t"], Person::new("ada", TENANT));
        assert_eq!(people["u"], Person::new("bob", "other"));
        assert!(super::people("ada").is_err());
    }
}
