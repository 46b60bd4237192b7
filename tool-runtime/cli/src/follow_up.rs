//! Formats the command that a person can run next. Names and ids in it are quoted for a shell.

use std::path::Path;

use crate::config::Settings;
use crate::session::Cli;
use crate::text::{option, store_word, word};

impl Cli<'_> {
    /// Returns the options with which a command in another terminal has the same policy, files, store, principal and
    /// tenant, but not the same roles and attributes. They begin with a space. The word `URL` replaces a URL that may
    /// contain a password.
    pub(super) fn same_options(&self) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let settings = &self.settings;
        let is_other = |data: &&Path| self.app.data.as_deref().unwrap_or(Path::new("data")) != *data;
        let options = [
            ("--config", settings.config.as_deref().map(path)),
            ("--policy", settings.policy.as_deref().map(path)),
            ("--data", Some(&*settings.data).filter(is_other).map(path)),
            ("--store", settings.store.as_deref().map(|url| store_word(url).to_owned())),
            ("--store-prefix", settings.sql.prefix.clone()),
            ("--digest-key-file", settings.digest_key.as_deref().map(path)),
            ("--principal", settings.principal.clone()),
            ("--tenant", settings.tenant.clone()),
        ];
        written(options.into_iter().filter_map(|(option, value)| Some((option, value?))))
    }

    /// Returns a command with an id, the words after the id, and options, which begin with a space.
    pub(super) fn command(&self, command: &str, (id, after): (&str, &str), options: &str) -> String {
        let (app, word) = (self.app.name, word(id));
        if id.starts_with('-') {
            format!("{app} {command}{options} -- {word}{after}")
        } else {
            format!("{app} {command} {word}{after}{options}")
        }
    }

    /// Returns [`same_options`](Self::same_options) with the roles and attributes of the party. Use it for a command in
    /// which `--role` does not mean the decider's roles.
    pub(super) fn same_party(&self) -> String {
        let Settings { roles, attributes, .. } = &self.settings;
        let roles = roles.iter().map(|role| ("--role", role.clone()));
        let attributes = attributes.iter().map(|(name, value)| ("--attribute", format!("{name}={value}")));
        format!("{}{}", self.same_options(), written(roles.chain(attributes)))
    }
}

/// Formats options as words of a shell, each after a space.
fn written(options: impl Iterator<Item = (&'static str, String)>) -> String {
    options.map(|(name, value)| option(name, &value)).collect()
}
