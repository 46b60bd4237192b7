//! Opens the store of a command, and implements `store`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use tokio::time::Instant;
use tool_runtime::store::{MemoryStore, Store, StoreError};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::exit::{Exit, Failure};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::log;
#[cfg(feature = "sqlite")]
use crate::private_file;
use crate::session::{Cli, Gate};
use crate::{audit, terminal, values};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAction {
    /// Create the tables of the store, or migrate older ones to the version of this program
    Migrate,
    /// After a restore from a backup: list the runs whose records end before an exported anchor, and hold them back
    /// from workers; fails if there are any
    Restored {
        /// The anchors, as `audit anchor` and `audit export --anchors` print them
        #[arg(long, value_name = "FILE")]
        anchors: PathBuf,
    },
    /// Close the calls of processes that have died, and remove expired documents; a worker on the store does both
    /// itself
    #[command(after_help = SWEEP_HELP)]
    Sweep {
        /// Stop after this time, for example 10s; the next sweep continues
        #[arg(long = "for", value_name = "TIME", value_parser = values::time, default_value = "60s")]
        time: Duration,
        /// Let the tools of this program reconcile or repeat calls first, under the policy of this command
        #[arg(long, conflicts_with = "time")]
        tools: bool,
    },
    /// Let workers continue a run that was held back
    Release {
        /// The run, as `store restored` prints it
        run: String,
    },
}

/// The calls that `store sweep` closes, for its help.
const SWEEP_HELP: &str = "\
A call is closed as `outcome_unknown` if it has no end, its lease has ended, and no worker, server or engine has its \
run. `audit open` lists such a call before the sweep, and `outcomes list` after it. If workers share the run, the \
sweep makes the run due instead, and its worker ends the call.
Without --tools, no tool runs: a call that its tool may reconcile or repeat is left open for a week, for a program that \
has the tool.
A service that restores its runs itself must restore them before a sweep, because it can continue such a call.
Commands sweep the store of the data folder by themselves. Only `worker` also sweeps a store that --store names.";

/// The longest time for which a command sweeps the store of its data folder before its own work. The next command
/// continues.
const TIDY: Duration = Duration::from_secs(5);

/// A command's reaction to a store that does not exist or has an older version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// Creates or migrates it, unless the settings forbid that.
    Made,
    /// Refuses it, for commands that need earlier records. A new store would have none, and these commands must not
    /// migrate a store.
    Refused,
}

/// Why a store is not open.
enum Unopened {
    #[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), expect(dead_code, reason = "there is no database"))]
    Store(String, StoreError),
    Failure(Failure),
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Unopened> for Failure {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Store(name, error) => {
                #[cfg(any(feature = "sqlite", feature = "postgres"))]
                log::unopened(&error);
                Self::usage(format!("cannot open {name}: {error} (-v prints the cause)")).code(error.code())
            }
            Unopened::Failure(failure) => failure,
        }
    }
}

/// The store below the data folder, which has the records of commands without `--store`.
#[cfg(feature = "sqlite")]
const RECORDS: &str = "tool-runtime.db";

impl Cli<'_> {
    /// Returns the store of this command: the store that `--store` names, or the store of the data folder. With
    /// `--store memory`, the store is in memory.
    pub(super) async fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        let opened = self.opened.get_or_try_init(async || match &self.settings.store {
            Some(url) => open(self, url, Missing::Made).await.map_err(Failure::from),
            None if self.settings.keeps_records => {
                let store = self.records().await?;
                // Usually no worker shares this store. The sweep closes the calls of processes that died.
                sweep(&*store, TIDY).await?;
                Ok(store)
            }
            None => Ok(Arc::new(MemoryStore::new()) as Arc<dyn Store>),
        });
        opened.await.map(Arc::clone)
    }

    /// Opens the store of the data folder, and creates it if it is missing. If it cannot be created, as on a read-only
    /// disk, the command keeps its records in memory and prints a message, even with `--quiet`. An existing store that
    /// cannot be used is an error.
    #[cfg(feature = "sqlite")]
    async fn records(&self) -> Result<Arc<dyn Store>, Failure> {
        let (data, path) = (&self.settings.data, self.settings.data.join(RECORDS));
        let made = || private_file::folder(data).and_then(|()| private_file::options().open(&path).map(drop));
        if !path.exists()
            && let Err(error) = made()
        {
            let text = format!(
                "the records of this command are not kept, because {} cannot be created ({error}); name another folder \
                 with --data, or a store with --store",
                path.display()
            );
            terminal::message(&terminal::safe_lines(&text));
            return Ok(Arc::new(MemoryStore::new()));
        }
        // Only processes of this machine use the store, so each of them may migrate it.
        Ok(sqlite(&path, self.sql_options(Missing::Made).migrate(true)).await?)
    }

    #[cfg(not(feature = "sqlite"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits")]
    async fn records(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(MemoryStore::new()))
    }

    /// Returns the URL of `--store`, or the URL of the data folder's store if it exists.
    pub(super) fn store_url(&self) -> Option<String> {
        #[cfg(feature = "sqlite")]
        if self.settings.store.is_none() && self.settings.keeps_records {
            let path = self.settings.data.join(RECORDS);
            return path.is_file().then(|| format!("sqlite:{}", path.display()));
        }
        self.settings.store.clone()
    }

    /// Returns the store with the records of earlier commands; `None` without `--store` if there are no such records.
    pub(super) async fn kept_records(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        match self.existing_store().await? {
            None if self.store_url().is_some() => self.store().await.map(Some),
            store => Ok(store),
        }
    }

    /// Returns the store with the records of earlier commands. A missing store is an error, because a new one has no
    /// records. `sources` lists the options with which the command reads other records.
    pub(super) async fn existing_records(&self, sources: &str) -> Result<Arc<dyn Store>, Failure> {
        self.kept_records().await?.ok_or_else(|| {
            let data = self.settings.data.display();
            let why = if cfg!(feature = "sqlite") {
                format!("`{data}` has no records of earlier commands; name the folder with `--data DIR`, or ")
            } else {
                "this program keeps no records by itself, because its package lacks the feature `sqlite` of \
                 tool-runtime-cli; name "
                    .to_owned()
            };
            Failure::usage(format!("{why}the source with {sources}"))
        })
    }

    /// Returns the store that `--store` names, which has to exist. `None` without `--store`.
    pub(super) async fn existing_store(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let Some(url) = &self.settings.store else { return Ok(None) };
        let opened =
            self.opened.get_or_try_init(async || open(self, url, Missing::Refused).await.map_err(Failure::from));
        opened.await.map(|store| Some(Arc::clone(store)))
    }

    /// Waits for all writes of the store. It is called after each command, before the process ends.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        match self.opened.get() {
            Some(store) => Ok(store.flush().await?),
            None => Ok(()),
        }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn sql_options(&self, missing: Missing) -> SqlOptions {
        let settings = &self.settings.sql;
        let mut options = SqlOptions::new().migrate(settings.migrate && missing == Missing::Made);
        if let Some(connections) = settings.connections {
            options = options.connections(connections);
        }
        if let Some(patience) = settings.patience {
            options = options.patience(patience);
        }
        match &settings.prefix {
            Some(prefix) => options.table_prefix(prefix.as_str()),
            None => options,
        }
    }
}

pub(super) async fn command(cli: &Cli<'_>, action: &StoreAction) -> Result<Exit, Failure> {
    let url = cli.store_url();
    let url = &url.ok_or_else(|| Failure::usage("name the store: --store sqlite:FILE or postgres://.."))?;
    match action {
        StoreAction::Migrate => migrate(cli, url).await,
        StoreAction::Restored { anchors } => restored(cli, url, anchors).await,
        StoreAction::Sweep { time, tools } => {
            if *tools && cli.settings.store.is_none() {
                // `Cli::store` would sweep first, and close calls that their tools can still continue.
                cli.opened.get_or_try_init(|| cli.records()).await?;
            }
            let store = cli.existing_records("`--store URL`").await?;
            let removed =
                if *tools { Some(cli.open().await?.runner.sweep().await?) } else { sweep(&*store, *time).await? };
            terminal::line(&match removed {
                _ if cli.settings.json => json!({"removed": removed, "complete": removed.is_some()}).to_string(),
                Some(removed) => format!("swept; {removed} expired documents removed"),
                None => "the time is over before all of the store is swept: run `store sweep` again".to_owned(),
            });
            Ok(if removed.is_some() { Exit::Done } else { Exit::Failed })
        }
        StoreAction::Release { run } => {
            let store = open(cli, url, Missing::Refused).await?;
            if store.release_run(run).await? {
                return Ok(Exit::Done);
            }
            Err(Failure::usage(format!("the store has no run `{}`", terminal::safe(run))).code("not_found"))
        }
    }
}

/// Closes the calls of dead processes and removes expired documents. Returns the number of removed documents; `None` if
/// the time was not enough. A sweep consists of independent transactions, so it may end after any of them.
async fn sweep(store: &dyn Store, time: Duration) -> Result<Option<u64>, StoreError> {
    tokio::time::timeout(time, store.sweep()).await.ok().transpose()
}

/// Lists the runs whose records end before an anchor, and holds back each of them that is in the store.
async fn restored(cli: &Cli<'_>, url: &str, anchors: &Path) -> Result<Exit, Failure> {
    let (file, anchors) = (anchors.display(), audit::exported(anchors)?);
    if anchors.is_empty() {
        // With an empty file, the command would report that no run is behind.
        let text = format!("{file} has no anchors: `audit export --anchors` prints those of a store");
        return Err(Failure::usage(text).code("unreadable_input"));
    }
    let store = open(cli, url, Missing::Refused).await?;
    // Exit code 1 means that some runs are behind, so an error gets another code.
    let behind = store.hold_back(&anchors).await.map_err(|error| Failure::from(error).unread())?;
    for finding in &behind {
        let (Some((run_id, last)), Some((found, held_back))) = (finding.record(), finding.behind()) else { continue };
        let anchored = last + 1;
        terminal::line(&if cli.settings.json {
            json!({"run": run_id, "anchored": anchored, "found": found, "held_back": held_back}).to_string()
        } else {
            let what = if held_back { "held back until `store release`" } else { "not in the store" };
            format!("{}  records {found} of {anchored}; {what}", terminal::safe(run_id))
        });
    }
    if behind.is_empty() {
        terminal::note("no run is behind the anchors");
        return Ok(Exit::Done);
    }
    Ok(Exit::Failed)
}

/// Creates or migrates the tables, and prints the result.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
async fn migrate(cli: &Cli<'_>, url: &str) -> Result<Exit, Failure> {
    const VERSION: i64 = SqlStore::VERSION;
    if !cli.settings.sql.migrate {
        return Err(Failure::usage("`store migrate` and --no-migrate contradict each other; remove one"));
    }
    let is_new = url.strip_prefix("sqlite:").is_some_and(|path| !Path::new(path).exists());
    let found = if is_new { Ok(0) } else { open(cli, url, Missing::Refused).await.map(|_| VERSION) };
    let was = match found {
        Err(Unopened::Store(_, StoreError::Older { found, .. })) => found,
        found => found?,
    };
    if was != VERSION {
        open(cli, url, Missing::Made).await?;
    }
    terminal::line(&match was {
        _ if cli.settings.json => json!({"was": was, "version": VERSION}).to_string(),
        VERSION => format!("the store has version {VERSION} already"),
        0 => format!("the store has its tables now: version {VERSION}"),
        was => format!("the store was migrated from version {was} to {VERSION}"),
    });
    Ok(Exit::Done)
}

/// Fails, because this program opens no database.
#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
async fn migrate(cli: &Cli<'_>, url: &str) -> Result<Exit, Failure> {
    open(cli, url, Missing::Made).await?;
    Ok(Exit::Done)
}

/// The interval between attempts to open an unavailable database.
const RETRY: Duration = Duration::from_secs(1);

/// Opens the store, and retries while the database is unavailable. Returns `None` if `ended` resolves first.
pub(super) async fn opened(
    cli: &Cli<'_>,
    patience: Duration,
    ended: impl Future<Output = ()>,
) -> Option<Result<Gate, Failure>> {
    let until = Instant::now() + patience;
    let mut is_noted = false;
    let mut ended = std::pin::pin!(ended);
    loop {
        let failure = match cli.open().await {
            Err(failure) if failure.code == "store_unavailable" && Instant::now() < until => failure,
            opened => return Some(opened),
        };
        if !is_noted {
            terminal::note(&format!("{}; the worker waits for it for {patience:?}", failure.message));
            is_noted = true;
        }
        if tokio::time::timeout(RETRY, ended.as_mut()).await.is_ok() {
            return None;
        }
    }
}

/// Opens a store by its URL. The URL can contain a password, so no message quotes it.
async fn open(cli: &Cli<'_>, url: &str, missing: Missing) -> Result<Arc<dyn Store>, Unopened> {
    if let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        // `sqlite://FILE` is refused: `//` begins a host, or a path at the root of the disk.
        if path.starts_with("//") {
            let text = "write the name of the file after the colon: sqlite:shared.db, or sqlite:/var/lib/shared.db";
            return Err(Failure::usage(text).into());
        }
        let path = Path::new(path);
        if missing == Missing::Refused && !path.is_file() {
            let message = format!(
                "there is no database {}; a command that writes creates it, such as `call` or `worker put`",
                path.display()
            );
            return Err(Failure::usage(message).code("unreadable_input").into());
        }
        #[cfg(feature = "sqlite")]
        return sqlite(path, cli.sql_options(missing)).await;
        #[cfg(not(feature = "sqlite"))]
        return Err(Failure::usage(
            "this program was built without SQLite: its package needs the feature `sqlite` of tool-runtime-cli",
        )
        .into());
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return postgres(cli, url, missing).await;
    }
    let text = "the store is sqlite:FILE or postgres://USER@HOST/DATABASE, or memory to keep nothing (--store, its \
                variable, or the file)";
    Err(Failure::usage(text).into())
}

#[cfg(feature = "sqlite")]
async fn sqlite(path: &Path, options: SqlOptions) -> Result<Arc<dyn Store>, Unopened> {
    let opened = SqlStore::sqlite(path, options).await;
    let store = opened.map_err(|error| Unopened::Store(path.display().to_string(), error))?;
    terminal::note_shared(path);
    Ok(Arc::new(store))
}

#[cfg(feature = "postgres")]
async fn postgres(cli: &Cli<'_>, url: &str, missing: Missing) -> Result<Arc<dyn Store>, Unopened> {
    let opened = SqlStore::postgres(url, cli.sql_options(missing)).await;
    Ok(Arc::new(opened.map_err(|error| Unopened::Store("the database".to_owned(), error))?))
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "with the feature it waits")]
async fn postgres(_: &Cli<'_>, _: &str, _: Missing) -> Result<Arc<dyn Store>, Unopened> {
    let message =
        "this program was built without PostgreSQL: its package needs the feature `postgres` of tool-runtime-cli";
    Err(Failure::usage(message).into())
}
