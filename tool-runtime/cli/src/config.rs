//! The settings of every command. Options override environment variables, which override the configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;
use tool_runtime::wire::Format;

use crate::endpoint::Endpoint;
use crate::exit::Failure;
#[cfg(feature = "mcp-client")]
use crate::mcp::settings::McpSettings;
use crate::places::prefix;
use crate::terminal::Color;
use crate::values::{attribute, name, named};
use crate::webhook::WebhookSettings;
use crate::{input, values};

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// The policy (TOML, or JSON when the name ends in .json); the application's own by default
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    /// The folder of the application's data and of the records of its calls; the application's own by default, or
    /// `data`
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// The store of records, calls that wait and shared runs: sqlite:FILE or `postgres://..`. By default the data
    /// folder has the records, and `memory` keeps none. A URL with a password belongs in the environment or the
    /// configuration file, because others can see the command line
    #[arg(long, global = true, value_name = "URL")]
    pub(super) store: Option<String>,
    #[command(flatten)]
    pub(super) store_options: StoreOptions,
    /// The file with the key for digests of arguments and signatures of removals, as 64 hexadecimal digits, if the
    /// application keeps it apart from the store
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) digest_key_file: Option<PathBuf>,
    /// The principal to act for, as the policy names it
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) principal: Option<String>,
    /// The tenant to act in
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) tenant: Option<String>,
    /// A role of the principal; repeat it for several
    #[arg(long = "role", global = true, value_name = "NAME")]
    pub(super) roles: Vec<String>,
    /// An attribute of the principal; repeat it for several
    #[arg(long = "attribute", global = true, value_name = "NAME=VALUE", value_parser = values::attribute)]
    pub(super) attributes: Vec<(String, String)>,
    /// Print JSON on stdout, and an error as one JSON object on stderr
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print no progress, notes or hints
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Log to stderr, with the details of failed tools and models; -vv and -vvv log more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Log to stderr at a level (error, warn, info, debug, trace) or by a filter such as
    /// `warn,tool_runtime=debug`, or to a file; repeat it for both. Without it `RUST_LOG` is the filter
    #[arg(long, global = true, value_name = "FILTER|FILE")]
    pub(super) log: Vec<String>,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(super) color: Option<Color>,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// How the store uses its database. Values that are not set come from the environment and the configuration file.
#[derive(Debug, Default, Args)]
pub(crate) struct StoreOptions {
    /// The maximum number of open connections to the store; 16 by default
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) store_connections: Option<u32>,
    /// How long to wait for the store, including a restart of its server, for example 30s; 10s by default
    #[arg(long, global = true, value_name = "TIME", value_parser = values::time)]
    pub(crate) store_patience: Option<Duration>,
    /// The prefix of the store's tables; `tool_runtime_` by default
    #[arg(long, global = true, value_name = "PREFIX", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store_prefix: Option<String>,
    /// Refuse a store without tables or with older ones; `store migrate` creates or migrates them
    #[arg(long, global = true)]
    pub(crate) no_migrate: bool,
}

/// The configuration file. Relative paths in `policy`, `data`, `store`, `digest_key_file` and `notices_secret_file`
/// start at the folder of the file. Other relative paths (`log`, and the programs and folders of `[mcp]`) start at the
/// current folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policy: Option<PathBuf>,
    data: Option<PathBuf>,
    store: Option<String>,
    store_connections: Option<u32>,
    store_patience: Option<String>,
    store_prefix: Option<String>,
    store_migrate: Option<bool>,
    #[serde(rename = "digest_key_file")]
    digest_key: Option<PathBuf>,
    principal: Option<String>,
    tenant: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    attributes: Vec<String>,
    log: Option<String>,
    color: Option<String>,
    model_url: Option<String>,
    model: Option<String>,
    format: Option<String>,
    key_env: Option<String>,
    notices_url: Option<String>,
    notices_secret_env: Option<String>,
    #[serde(rename = "notices_secret_file")]
    notices_secret: Option<PathBuf>,
    #[cfg(feature = "mcp-client")]
    #[serde(default)]
    mcp: McpSettings,
}

/// The settings of every command. The type has no `Debug`, because the URL of the store can contain a password.
pub(super) struct Settings {
    /// The configuration file, if the command line or the environment names one.
    pub(super) config: Option<PathBuf>,
    pub(super) policy: Option<PathBuf>,
    pub(super) data: PathBuf,
    /// The URL of the store that processes share. It can contain a password.
    pub(super) store: Option<String>,
    /// Whether a command without a store keeps its records in the data folder.
    pub(super) keeps_records: bool,
    pub(super) sql: StoreSettings,
    /// The file with the key for digests. `None` if the store keeps the key.
    pub(super) digest_key: Option<PathBuf>,
    pub(super) principal: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) roles: Vec<String>,
    pub(super) attributes: Vec<(Arc<str>, Arc<str>)>,
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) verbose: u8,
    pub(super) log: Vec<String>,
    pub(super) rust_log: Option<String>,
    pub(super) color: Color,
    pub(super) webhook: WebhookSettings,
    /// The settings of the model's endpoint from the environment and the configuration file.
    endpoint: Endpoint,
    /// The principal and the tenant that the command line names. Some commands filter by them.
    pub(super) named: Named,
    /// The MCP servers whose tools are added to the catalog.
    #[cfg(feature = "mcp-client")]
    pub(super) mcp: McpSettings,
}

/// The options of the database; `None` selects the library's default.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(
        dead_code,
        reason = "the options are read and checked in every build; without a database they have no effect"
    )
)]
pub(super) struct StoreSettings {
    pub(super) connections: Option<u32>,
    pub(super) patience: Option<Duration>,
    pub(super) prefix: Option<String>,
    pub(super) migrate: bool,
}

impl StoreSettings {
    fn read(
        given: StoreOptions,
        file: &File,
        variable: &impl Fn(&str) -> Result<Option<String>, Failure>,
        prefix: &str,
    ) -> Result<Self, Failure> {
        let wrong = |setting: String, why: &str| Failure::usage(format!("{setting}: {why}")).code("config");
        let connections = match variable("STORE_CONNECTIONS")? {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| wrong(format!("{prefix}_STORE_CONNECTIONS"), "write a whole number from 1"))?,
            ),
            None => file.store_connections,
        };
        if connections == Some(0) {
            return Err(wrong("`store_connections`".to_owned(), "write 1 or more"));
        }
        let time = match (variable("STORE_PATIENCE")?, &file.store_patience) {
            (Some(text), _) => Some((text, format!("{prefix}_STORE_PATIENCE"))),
            (None, Some(text)) => Some((text.clone(), "`store_patience` in the configuration file".to_owned())),
            (None, None) => None,
        };
        let time = time.map(|(text, setting)| values::time(&text).map_err(|why| wrong(setting, &why))).transpose()?;
        let migrate = match variable("STORE_MIGRATE")?.as_deref() {
            Some("true") => true,
            Some("false") => false,
            Some(_) => return Err(wrong(format!("{prefix}_STORE_MIGRATE"), "write true or false")),
            None => file.store_migrate.unwrap_or(true),
        };
        Ok(Self {
            connections: given.store_connections.or(connections),
            patience: given.store_patience.or(time),
            prefix: given.store_prefix.or(variable("STORE_PREFIX")?).or_else(|| file.store_prefix.clone()),
            migrate: migrate && !given.no_migrate,
        })
    }
}

/// The principal and the tenant that the options of the command line name.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) principal: Option<String>,
    pub(super) tenant: Option<String>,
}

fn usual_path(app: &str) -> Option<PathBuf> {
    let folder = if cfg!(windows) {
        PathBuf::from(std::env::var_os("APPDATA")?)
    } else {
        match std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
            Some(folder) => folder,
            None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
        }
    };
    Some(folder.join(app).join("config.toml"))
}

/// The name of a store in memory: it keeps no records after the command, and shares no runs with other processes.
const MEMORY: &str = "memory";

impl Settings {
    /// Reads the settings of a command of the application `app`, whose default data folder is `own_data`.
    pub(super) fn read(app: &str, own_data: Option<&Path>, global: Global) -> Result<Self, Failure> {
        let prefix = prefix(app);
        let rust_log = variable("RUST_LOG")?;
        let variable = |name: &str| variable(&format!("{prefix}_{name}"));
        let named_file = global.config.or(variable("CONFIG")?.map(PathBuf::from));
        let file = match &named_file {
            Some(path) => File::read(path)?,
            None => match usual_path(app).filter(|path| path.is_file()) {
                Some(path) => File::read(&path)?,
                None => File::default(),
            },
        };
        let sql = StoreSettings::read(global.store_options, &file, &variable, &prefix)?;
        let roles = match variable("ROLES")? {
            _ if !global.roles.is_empty() => global.roles,
            Some(text) => text.split(',').map(|role| role.trim().to_owned()).filter(|role| !role.is_empty()).collect(),
            None => file.roles,
        };
        let attributes = match variable("ATTRIBUTES")? {
            _ if !global.attributes.is_empty() => global.attributes,
            Some(text) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                attributes(words, &format!("{prefix}_ATTRIBUTES"))?
            }
            None => attributes(file.attributes.iter().map(String::as_str), "`attributes` in the configuration file")?,
        };
        let log = match variable("LOG")? {
            _ if !global.log.is_empty() => global.log,
            other => other.or(file.log).into_iter().collect(),
        };
        let format = match (variable("FORMAT")?, file.format) {
            (Some(text), _) => Some(format_of(&text, &format!("{prefix}_FORMAT"))?),
            (None, Some(text)) => Some(format_of(&text, "`format` in the configuration file")?),
            (None, None) => None,
        };
        let file_color = file.color.map(|text| {
            <Color as clap::ValueEnum>::from_str(&text, false).map_err(|_| {
                Failure::usage("`color` in the configuration file is auto, always or never").code("config")
            })
        });
        // The environment overrides the configuration file, as for every setting.
        let file_color = file_color.transpose()?.filter(|_| variable_is_unset("NO_COLOR"));
        let store = global.store.or(variable("STORE")?).or(file.store);
        let own_data = || own_data.map_or_else(|| "data".into(), Path::to_owned);
        Ok(Self {
            config: named_file,
            policy: global.policy.or(variable("POLICY")?.map(PathBuf::from)).or(file.policy),
            data: global.data.or(variable("DATA")?.map(PathBuf::from)).or(file.data).unwrap_or_else(own_data),
            keeps_records: store.as_deref() != Some(MEMORY),
            store: store.filter(|url| url != MEMORY),
            sql,
            digest_key: global.digest_key_file.or(variable("DIGEST_KEY_FILE")?.map(PathBuf::from)).or(file.digest_key),
            #[cfg(feature = "mcp-client")]
            mcp: file.mcp,
            named: Named { principal: global.principal.clone(), tenant: global.tenant.clone() },
            principal: global.principal.or(variable("PRINCIPAL")?).or(file.principal),
            tenant: global.tenant.or(variable("TENANT")?).or(file.tenant),
            roles,
            attributes: attributes.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            log,
            rust_log,
            color: global.color.or(file_color).unwrap_or(Color::Auto),
            webhook: WebhookSettings {
                url: variable("NOTICES_URL")?.or(file.notices_url),
                secret_env: variable("NOTICES_SECRET_ENV")?.or(file.notices_secret_env),
                secret_file: file.notices_secret,
            },
            endpoint: Endpoint {
                model_url: variable("MODEL_URL")?.or(file.model_url),
                model: variable("MODEL")?.or(file.model),
                format,
                key_env: variable("KEY_ENV")?.or(file.key_env),
                ..Endpoint::default()
            },
        })
    }

    /// Completes the model settings of the command line from the environment and the file.
    pub(super) fn endpoint(&self, given: &Endpoint) -> Endpoint {
        let usual = &self.endpoint;
        let mut endpoint = given.clone();
        // A configured key belongs to the configured endpoint, and is not sent to an endpoint from the command line.
        if endpoint.model_url.is_none() {
            endpoint.key_env = endpoint.key_env.or_else(|| usual.key_env.clone());
            endpoint.model_url.clone_from(&usual.model_url);
        }
        endpoint.model = endpoint.model.or_else(|| usual.model.clone());
        endpoint.format = endpoint.format.or(usual.format);
        endpoint
    }
}

impl File {
    fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = input::text(input::file(path)?, &name)?;
        let mut file: Self = toml::from_str(&text).map_err(|error| {
            // The whole error would quote the line, which can contain a password.
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let why = input::unquoted(error.message());
            let text = format!("the configuration file {name} cannot be used: line {line}: {why}");
            Failure::usage(text.trim_end()).code("config")
        })?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        if let Some(path) = file.store.as_deref().and_then(|url| url.strip_prefix("sqlite:")) {
            file.store = Some(format!("sqlite:{}", folder.join(path).display()));
        }
        for own in
            [&mut file.policy, &mut file.data, &mut file.digest_key, &mut file.notices_secret].into_iter().flatten()
        {
            *own = folder.join(&*own);
        }
        Ok(file)
    }
}

/// Parses the attributes of a setting.
fn attributes<'w>(words: impl Iterator<Item = &'w str>, setting: &str) -> Result<Vec<(String, String)>, Failure> {
    let read = |word| attribute(word).map_err(|why| Failure::usage(format!("{setting}: {why}")).code("config"));
    words.map(read).collect()
}

/// Parses the format of a setting.
fn format_of(text: &str, setting: &str) -> Result<Format, Failure> {
    named(text).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| name(*format)).collect();
        Failure::usage(format!("{setting} is `{text}`, which is not one of {}", names.join(", "))).code("config")
    })
}

fn variable_is_unset(name: &str) -> bool {
    std::env::var_os(name).is_none_or(|value| value.is_empty())
}

/// Returns an environment variable that is set and not empty.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("the environment variable {name} is not UTF-8 text")).code("config"))
        }
    }
}
