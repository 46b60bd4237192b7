//! Tests of the tools through the gate, with adapters for tests.

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]
#![allow(unused_crate_dependencies, reason = "the crate's own dependencies are not this test's")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use office_tools::Failure;
use office_tools::tasks::UpdateTask;
use office_tools::tasks::{Task, TaskChange, TaskReader, TaskState, TaskWriter, create_task, delete_task, list_tasks};
use serde_json::json;
use tool_runtime::testing::{Fault, Harness, harness};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, assert_catalog_ok};
use uuid::Uuid;

const TASK: Uuid = Uuid::from_u128(0x0c5e_9f3a_1b2d_4e6f_8a7b_9c0d_1e2f_3a4b);

/// Tasks in memory.
struct Tasks(Mutex<Vec<Task>>);

#[async_trait]
impl TaskReader for Tasks {
    async fn list(&self, state: Option<TaskState>) -> Result<Vec<Task>, Failure> {
        let tasks = self.0.lock().unwrap();
        Ok(tasks.iter().filter(|task| state.is_none_or(|state| task.state == state)).cloned().collect())
    }
}

#[async_trait]
impl TaskWriter for Tasks {
    async fn create(&self, task: Task) -> Result<Task, Failure> {
        self.0.lock().unwrap().push(task.clone());
        Ok(task)
    }

    async fn update(&self, id: Uuid, change: TaskChange) -> Result<Task, Failure> {
        let mut tasks = self.0.lock().unwrap();
        let task = tasks.iter_mut().find(|task| task.task_id == id).ok_or(Failure::NotFound)?;
        task.title = change.title.unwrap_or_else(|| task.title.clone());
        task.state = change.state.unwrap_or(task.state);
        Ok(task.clone())
    }

    async fn delete(&self, id: Uuid) -> Result<(), Failure> {
        self.0.lock().unwrap().retain(|task| task.task_id != id);
        Ok(())
    }
}

fn office() -> Harness {
    let catalog = ToolCatalog::builder().tool::<list_tasks>().tool::<create_task>().tool::<delete_task>();
    let task = Task {
        task_id: TASK,
        title: "Renew the lease".to_owned(),
        state: TaskState::Todo,
        due_date: None,
        owner_email: "ada@example.org".to_owned(),
    };
    let tasks = Arc::new(Tasks(Mutex::new(vec![task])));
    harness(catalog.tool::<UpdateTask>().build().unwrap())
        .with::<dyn TaskReader>(Arc::clone(&tasks) as _)
        .with::<dyn TaskWriter>(tasks)
        .options(RunOptions::new().principal("ada"))
}

#[test]
fn schemas_and_parsers_agree() {
    assert_catalog_ok!();
}

#[tokio::test]
async fn an_invented_id_changes_nothing() {
    let office = office();
    let change = json!({ "task_id": TASK, "state": "done" });
    let refused = office.call("tasks__update_task", change.clone()).await;
    refused.assert_violation("/task_id").assert_capability_calls([]);
    let listed = office.call("tasks__list_tasks", json!({})).await;
    let task = json!({ "task_id": TASK, "title": "Renew the lease", "state": "todo", "due_date": null });
    listed.assert_value(json!([task])).assert_capability_calls(["TaskReader::list"]);
    let changed = office.call("tasks__update_task", change).await;
    changed.assert_outcome("ok").assert_capability_calls(["TaskWriter::update"]);
}

/// Each template is one sentence with optional parts.
#[tokio::test]
async fn an_approver_reads_the_parts_that_change() {
    let policy = "allowed_tools = ['tasks__list_tasks', 'tasks__create_task', 'tasks__update_task']\n\
        require_approval_for_tools = ['tasks__create_task', 'tasks__update_task']";
    let office = office().policy(ToolPolicy::from_toml(policy).unwrap());
    office.call("tasks__list_tasks", json!({})).await.assert_outcome("ok");
    let (create, update) = ("tasks__create_task", "tasks__update_task");
    for (tool, arguments, expected) in [
        (create, json!({ "title": "Rent" }), "Creates the task “Rent”".to_owned()),
        (
            create,
            json!({ "title": "Rent", "due_date": "2026-12-01" }),
            "Creates the task “Rent”, due on “2026-12-01”".to_owned(),
        ),
        (update, json!({ "task_id": TASK, "state": "done" }), format!("Changes the task “{TASK}”, moves it to “done”")),
        (
            update,
            json!({ "task_id": TASK, "title": "Rent", "due_date": "2026-12-01" }),
            format!("Changes the task “{TASK}”, renames it to “Rent”, makes it due “2026-12-01”"),
        ),
    ] {
        let waits = office.call(tool, arguments).await;
        waits.assert_outcome("approval_required");
        let pending = office.run().pending(waits.call_id()).await.unwrap().unwrap();
        assert_eq!(pending.summary, Some(expected));
    }
}

#[tokio::test]
async fn a_task_belongs_to_its_creator() {
    let office = office().record_arguments();
    let created = office.call("tasks__create_task", json!({ "title": "Water the plants" })).await;
    created.assert_outcome("ok");
    assert!(matches!(created.capability_calls(), [call] if call.contains("owner_email: \"ada\"")), "{created}");
    assert!(!created.to_model().contains("owner_email"), "{created}");
}

#[tokio::test]
async fn a_panic_while_it_deletes_leaves_the_outcome_open() {
    let office = office();
    office.call("tasks__list_tasks", json!({})).await.assert_outcome("ok");
    office.break_tool("tasks__delete_task", Fault::Panic);
    let deleted = office.call("tasks__delete_task", json!({ "task_id": TASK })).await;
    deleted.assert_outcome("outcome_unknown").assert_capability_calls([]);
}
