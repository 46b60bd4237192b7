//! The names of the environment variables and of the keys in the configuration file.

/// The environment variables, without the application's prefix, with their meanings.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("POLICY", "--policy"),
    ("DATA", "--data"),
    ("STORE", "--store"),
    ("STORE_CONNECTIONS", "--store-connections"),
    ("STORE_PATIENCE", "--store-patience"),
    ("STORE_PREFIX", "--store-prefix"),
    ("DIGEST_KEY_FILE", "--digest-key-file"),
    ("STORE_MIGRATE", "true, or false for --no-migrate"),
    ("PRINCIPAL", "--principal"),
    ("TENANT", "--tenant"),
    ("ROLES", "--role, separated by commas"),
    ("ATTRIBUTES", "--attribute, separated by commas"),
    ("LOG", "--log"),
    ("MODEL_URL", "--model-url"),
    ("MODEL", "--model"),
    ("FORMAT", "--format"),
    ("KEY_ENV", "--key-env"),
    ("NOTICES_URL", "the webhook of `notices send`"),
    ("NOTICES_SECRET_ENV", "the variable that holds the webhook's secrets, separated by spaces"),
    ("CONFIG", "--config"),
];

/// The keys of the configuration file, for the help.
pub(super) const KEYS: &str = "policy, data, store, store_connections, store_patience, store_prefix, store_migrate,\n  \
     digest_key_file, principal, tenant, roles, attributes, log, color, model_url, model, format, key_env,\n  \
     notices_url, notices_secret_env, notices_secret_file";

/// Returns the prefix of the application's variables: `TOOLBOX` for `toolbox`.
pub(super) fn prefix(app: &str) -> String {
    app.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }).collect()
}

/// Returns the ways to set a model, for the error of a command that has none.
pub(super) fn model_url(app: &str) -> String {
    format!("`--model-url URL`, or set {}_MODEL_URL", prefix(app))
}

/// Returns the default path of the configuration file, for the help.
pub(super) fn usual_place(app: &str) -> String {
    if cfg!(windows) { format!("%APPDATA%\\{app}\\config.toml") } else { format!("~/.config/{app}/config.toml") }
}
