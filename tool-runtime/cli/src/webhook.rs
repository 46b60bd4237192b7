//! [`WebhookSettings`]: the configured webhook, which receives notices.

use std::path::PathBuf;
use std::sync::Arc;

use tool_runtime::agent::http::Notifier;
use tool_runtime::store::Store;

use crate::exit::Failure;
use crate::{input, private_file, terminal};

/// The configured webhook. The type has no `Debug`, because the URL can contain a password.
#[derive(Default)]
pub(crate) struct WebhookSettings {
    pub(crate) url: Option<String>,
    /// The environment variable with the secrets.
    pub(crate) secret_env: Option<String>,
    /// The file with the secrets.
    pub(crate) secret_file: Option<PathBuf>,
}

impl WebhookSettings {
    /// Creates the notifier for this webhook.
    pub(crate) fn notifier(&self, store: Arc<dyn Store>) -> Result<Notifier, Failure> {
        let missing = |text: &str| Failure::usage(text.to_owned()).code("config");
        let url = self.url.as_deref().ok_or_else(|| {
            missing("the configuration names no webhook; set `notices_url`, and `notices_secret_env` or `notices_secret_file`")
        })?;
        let secrets = match (&self.secret_env, &self.secret_file) {
            (Some(variable), _) => std::env::var(variable).map_err(|_| {
                missing(&format!("the environment variable `{variable}` holds no readable secret; set it"))
            })?,
            (None, Some(path)) => {
                if let Some(mode) = private_file::shared_mode(path) {
                    terminal::note(&private_file::warning(path, mode));
                }
                input::text(input::file(path)?, &path.display().to_string())?
            }
            (None, None) => {
                return Err(missing("the webhook has no secret; set `notices_secret_env` or `notices_secret_file`"));
            }
        };
        Notifier::new(store, url, secrets.split_whitespace())
            .map_err(|error| Failure::usage(error.to_string()).code(error.code()))
    }
}
