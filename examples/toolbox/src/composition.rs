//! The composition root: the only module that connects tools with adapters.

use std::path::Path;
use std::sync::Arc;

use office_tools::calendar::Calendar;
use office_tools::docs::DocumentIndex;
use office_tools::files::{FileReader, FileWriter};
use office_tools::mail::Mailer;
use office_tools::notes::{NoteReader, NoteWriter};
use office_tools::reports::DoorLog;
use office_tools::tasks::{TaskReader, TaskWriter};
use office_tools::time::Clock;
use office_tools::weather::Climate;
use office_tools::web::PageFetcher;
use tool_runtime::capability::ConnectionId;
use tool_runtime::{Capabilities, Connection};
use tool_runtime_cli::Adapters;

use crate::adapters::calendar::CalendarBroker;
use crate::adapters::climate::ClimateTable;
use crate::adapters::clock::SystemClock;
use crate::adapters::database::Database;
use crate::adapters::mail;
use crate::adapters::outbox::Outbox;
use crate::adapters::service::CalendarService;
use crate::adapters::titles::Titles;
use crate::adapters::vault::{self, AccountKey, Vault};
use crate::adapters::web::Web;
use crate::adapters::workspace::Workspace;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The principal and tenant of commands without `--principal` and `--tenant`, and their calendar account.
pub(crate) const PRINCIPAL: &str = "ada";
pub(crate) const TENANT: &str = "example-org";
const CALENDAR: &str = "calendar-of-ada";

/// Opens the adapters in the data folder. On first use, creates the folder and example data.
pub(crate) fn open(data: &Path) -> Result<Adapters, Error> {
    std::fs::create_dir_all(data).map_err(|error| cannot("data", &error))?;
    let database = Arc::new(Database::open(&data.join("toolbox.db"))?);
    let workspace = Arc::new(Workspace::open(&data.join("workspace")).map_err(|error| cannot("workspace", &error))?);
    let capabilities = Capabilities::new()
        .with::<dyn Clock>(Arc::new(SystemClock))
        .with::<dyn Climate>(Arc::new(ClimateTable))
        .with::<dyn TaskReader>(Arc::clone(&database) as _)
        .with::<dyn TaskWriter>(Arc::clone(&database) as _)
        .with::<dyn NoteReader>(Arc::clone(&database) as _)
        .with::<dyn NoteWriter>(Arc::clone(&database) as _)
        .with::<dyn DocumentIndex>(Arc::clone(&database) as _)
        .with::<dyn DoorLog>(Arc::clone(&database) as _)
        .with::<dyn FileReader>(Arc::clone(&workspace) as _)
        .with::<dyn FileWriter>(workspace)
        .with::<dyn Mailer>(mail::open(data)?)
        .with::<dyn PageFetcher>(Arc::new(Web::new()));
    let titles = Arc::new(Titles(Arc::clone(&database)));
    let broker = calendars(data, database)?;
    let kind = Connection::<dyn Calendar>::KIND.to_owned();
    let adapters = Adapters::new(capabilities)
        .connections(Arc::new(broker), [(kind, ConnectionId::new(CALENDAR))])
        .names("tasks__update_task", "task_id", Arc::clone(&titles) as _)
        .names("tasks__delete_task", "task_id", titles);
    Ok(adapters)
}

/// Creates the broker of calendars, with the account of the default principal.
fn calendars(data: &Path, database: Arc<Database>) -> Result<CalendarBroker, Error> {
    let key = |name| vault::key(&data.join(name)).map_err(|error| cannot("data", &error));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let service = Arc::new(CalendarService::new(key("calendar-service.key")?, Arc::clone(&clock)));
    let vault = Vault::new(Arc::clone(&database), key("connections.key")?);
    let place = AccountKey { tenant: TENANT.to_owned(), principal: PRINCIPAL.to_owned(), id: CALENDAR.to_owned() };
    vault.connect(&place, &service.issue(CALENDAR)?)?;
    Ok(CalendarBroker::new(database, Arc::clone(&service), vault, service, clock))
}

/// Lists the rows, files and mails that tools can change, one line per item. Creates and changes nothing.
pub(crate) fn inspect(data: &Path) -> Result<Vec<String>, Error> {
    let mut lines = Database::describe(&data.join("toolbox.db"))?;
    lines.extend(Workspace::describe(&data.join("workspace")).map_err(|error| cannot("workspace", &error))?);
    lines.extend(Outbox::describe(&data.join("outbox")).map_err(|error| cannot("outbox", &error))?);
    lines.sort();
    Ok(lines)
}

fn cannot(folder: &str, error: &std::io::Error) -> Error {
    format!("the {folder} folder cannot be used ({error}); check its permissions or choose another --data folder")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inspect_creates_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert!(inspect(&data).unwrap().is_empty());
        assert!(!data.exists());
        open(&data).unwrap();
        let first = inspect(&data).unwrap();
        assert!(first.is_sorted() && first.iter().any(|line| line.starts_with("file plan.md")), "{first:?}");
        open(&data).unwrap();
        assert_eq!(inspect(&data).unwrap(), first);
    }

    #[test]
    fn schemas_and_parsers_agree() {
        use office_tools as _;

        tool_runtime::assert_catalog_ok!();
    }

    /// Through the gate and the adapters, a tool reads the data that another tool wrote.
    #[tokio::test]
    async fn a_task_that_was_created_is_listed() {
        use office_tools::tasks::{create_task, list_tasks};
        use serde_json::json;
        use tool_runtime::{RunOptions, ToolCatalog, testing};

        let data = tempfile::tempdir().unwrap();
        let database = Arc::new(Database::open(&data.path().join("toolbox.db")).unwrap());
        let catalog = ToolCatalog::builder().tool::<create_task>().tool::<list_tasks>().build().unwrap();
        let harness = testing::harness(catalog)
            .with::<dyn TaskReader>(Arc::clone(&database) as _)
            .with::<dyn TaskWriter>(database)
            .options(RunOptions::new().principal(PRINCIPAL));
        let created = harness.call("tasks__create_task", json!({ "title": "Water the plants" })).await;
        created.assert_outcome("ok").assert_capability_calls(["TaskWriter::create"]);
        let listed = harness.call("tasks__list_tasks", json!({})).await;
        listed.assert_capability_calls(["TaskReader::list"]);
        assert!(listed.to_model().contains("Water the plants"), "{listed}");
    }

    /// The policy fits the catalog, also with all of its commented-out rules.
    #[test]
    fn the_policy_and_its_examples_are_in_order() {
        use office_tools as _;
        use tool_runtime::{ToolPolicy, ToolRunner};

        let text = include_str!("../policy.toml");
        let line = |line: &str| line.strip_prefix("#: ").unwrap_or(line).to_owned();
        let whole: Vec<_> = text.lines().map(line).collect();
        let data = tempfile::tempdir().unwrap();
        for text in [text, &whole.join("\n")] {
            let adapters = open(data.path()).unwrap();
            let policy = ToolPolicy::from_toml(text).unwrap();
            let mut builder = ToolRunner::builder(crate::catalog().unwrap(), policy).approvals(true);
            if let Some(broker) = adapters.broker {
                builder = builder.broker(broker);
            }
            builder.capabilities(adapters.capabilities).build().unwrap();
        }
        for key in ["limits", "loop_guard", "roles", "principals", "tenants", "tags", "labels", "arguments", "repair"] {
            assert!(text.contains(key), "{key} is not shown");
        }
    }
}
