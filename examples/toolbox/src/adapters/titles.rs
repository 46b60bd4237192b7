//! Looks up the titles of tasks, because a person who decides on a call sees only the id of a task in it.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::OptionalExtension as _;
use tool_runtime::ToolError;
use tool_runtime::capability::{NameLookup, NameRequest};

use crate::adapters::database::Database;

/// Looks up the titles of tasks. The file belongs to one tenant, all of whose principals may see its tasks.
pub(crate) struct Titles(pub(crate) Arc<Database>);

#[async_trait]
impl NameLookup for Titles {
    async fn name(&self, request: &NameRequest<'_>) -> Result<Option<String>, ToolError> {
        let id = request.value.to_owned();
        let find = move |connection: &mut rusqlite::Connection| {
            let query = "SELECT title FROM tasks WHERE task_id = ?1";
            connection.query_row(query, [id], |row| row.get(0)).optional()
        };
        Ok(self.0.run(find).await?)
    }
}
