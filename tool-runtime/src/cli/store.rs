//! The store that `--store` names, opened once for a command.

use std::path::Path;
use std::sync::Arc;

use crate::cli::exit::Failure;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::cli::log;
use crate::cli::session::Cli;
use crate::store::{MemoryStore, Store};

impl Cli<'_> {
    /// The store of this command: the one that `--store` names, or one in memory.
    pub(super) async fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        let opened = self.opened.get_or_try_init(async || match &self.settings.store {
            Some(url) => open(url, false).await,
            None => Ok(Arc::new(MemoryStore::new()) as Arc<dyn Store>),
        });
        opened.await.map(Arc::clone)
    }

    /// The store that `--store` names, which has to be there already. `None` if it names none.
    pub(super) async fn existing_store(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let Some(url) = &self.settings.store else { return Ok(None) };
        let opened = self.opened.get_or_try_init(async || open(url, true).await);
        opened.await.map(|store| Some(Arc::clone(store)))
    }

    /// Waits until everything is kept. Called before the process ends.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        match self.opened.get() {
            Some(store) => Ok(store.flush().await?),
            None => Ok(()),
        }
    }
}

/// Opens a store by its URL. It can hold a password, so no message quotes it.
async fn open(url: &str, existing: bool) -> Result<Arc<dyn Store>, Failure> {
    if let Some(path) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
        // `//` would be a host, and a file at the root of the disk.
        if path.starts_with("//") {
            let text = "the file comes behind the colon: sqlite:shared.db, or sqlite:/var/lib/shared.db";
            return Err(Failure::usage(text));
        }
        let path = Path::new(path);
        if existing && !path.is_file() {
            let message = format!(
                "there is no database {}; a command that writes makes it, such as `call` or `worker put`",
                path.display()
            );
            return Err(Failure::usage(message).code("unreadable_input"));
        }
        return sqlite(path).await;
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return postgres(url).await;
    }
    let text = "the store is sqlite:FILE or postgres://USER@HOST/DATABASE (--store, its variable, or the file)";
    Err(Failure::usage(text))
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn unopened(name: &str, error: &crate::store::StoreError) -> Failure {
    log::unopened(error);
    Failure::usage(format!("cannot open {name}: {error} (-v says more)")).code(error.code())
}

#[cfg(feature = "sqlite")]
async fn sqlite(path: &Path) -> Result<Arc<dyn Store>, Failure> {
    let opened = crate::store::SqlStore::sqlite(path, crate::store::SqlOptions::new()).await;
    let store = opened.map_err(|error| unopened(&path.display().to_string(), &error))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "sqlite"))]
#[expect(clippy::unused_async, reason = "with the feature it waits")]
async fn sqlite(_: &Path) -> Result<Arc<dyn Store>, Failure> {
    Err(Failure::usage("this program was built without SQLite: its package needs the feature `sqlite` of tool-runtime"))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn Store>, Failure> {
    let opened = crate::store::SqlStore::postgres(url, crate::store::SqlOptions::new()).await;
    let store = opened.map_err(|error| unopened("the database", &error))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "with the feature it waits")]
async fn postgres(_: &str) -> Result<Arc<dyn Store>, Failure> {
    let message = "this program was built without PostgreSQL: its package needs the feature `postgres` of tool-runtime";
    Err(Failure::usage(message))
}
