//! Reads and writes tasks, notes, documents and the door log in the database.

use async_trait::async_trait;
use jiff::civil::Date;
use office_tools::Failure;
use office_tools::docs::{DocumentIndex, Hit};
use office_tools::notes::{Note, NoteReader, NoteWriter};
use office_tools::reports::{DoorEntry, DoorLog};
use office_tools::tasks::{Task, TaskChange, TaskReader, TaskState, TaskWriter};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::adapters::database::Database;

const TASK: &str = "task_id, title, state, due_date, owner_email";

fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Todo => "todo",
        TaskState::InProgress => "in_progress",
        TaskState::Blocked => "blocked",
        TaskState::Done => "done",
    }
}

/// Returns the error for a column whose value does not fit its type.
fn wrong(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn task(row: &Row<'_>) -> Result<Task, rusqlite::Error> {
    let id: String = row.get(0)?;
    let state: String = row.get(2)?;
    let due: Option<String> = row.get(3)?;
    Ok(Task {
        task_id: id.parse().map_err(|error| wrong(0, error))?,
        title: row.get(1)?,
        state: match state.as_str() {
            "todo" => TaskState::Todo,
            "in_progress" => TaskState::InProgress,
            "blocked" => TaskState::Blocked,
            _ => TaskState::Done,
        },
        due_date: due.map(|date| date.parse::<Date>()).transpose().map_err(|error| wrong(3, error))?,
        owner_email: row.get(4)?,
    })
}

fn one_task(connection: &Connection, id: Uuid) -> Result<Task, rusqlite::Error> {
    connection.query_row(&format!("SELECT {TASK} FROM tasks WHERE task_id = ?1"), [id.to_string()], task)
}

#[async_trait]
impl TaskReader for Database {
    async fn list(&self, state: Option<TaskState>) -> Result<Vec<Task>, Failure> {
        self.run(move |connection| {
            let query = format!("SELECT {TASK} FROM tasks WHERE ?1 IS NULL OR state = ?1 ORDER BY rowid");
            let mut statement = connection.prepare(&query)?;
            statement.query_map([state.map(state_name)], task)?.collect()
        })
        .await
    }
}

#[async_trait]
impl TaskWriter for Database {
    async fn create(&self, new: Task) -> Result<Task, Failure> {
        self.run(move |connection| {
            let due = new.due_date.map(|date| date.to_string());
            connection.execute(
                "INSERT INTO tasks VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                params![new.task_id.to_string(), new.title, state_name(new.state), due, new.owner_email],
            )?;
            one_task(connection, new.task_id)
        })
        .await
    }

    async fn update(&self, id: Uuid, change: TaskChange) -> Result<Task, Failure> {
        self.run(move |connection| {
            let due = change.due_date.map(|date| date.to_string());
            connection.execute(
                "UPDATE tasks SET state = coalesce(?2, state), title = coalesce(?3, title),
                 due_date = coalesce(?4, due_date) WHERE task_id = ?1",
                params![id.to_string(), change.state.map(state_name), change.title, due],
            )?;
            one_task(connection, id)
        })
        .await
    }

    async fn delete(&self, id: Uuid) -> Result<(), Failure> {
        self.run(move |connection| {
            match connection.execute("DELETE FROM tasks WHERE task_id = ?1", [id.to_string()])? {
                0 => Err(rusqlite::Error::QueryReturnedNoRows),
                _ => Ok(()),
            }
        })
        .await
    }
}

fn note(row: &Row<'_>) -> Result<Note, rusqlite::Error> {
    Ok(Note { note_id: row.get(0)?, text: row.get(1)? })
}

#[async_trait]
impl NoteReader for Database {
    async fn list(&self) -> Result<Vec<Note>, Failure> {
        self.run(|connection| {
            let mut statement = connection.prepare("SELECT note_id, text FROM notes ORDER BY note_id DESC")?;
            statement.query_map([], note)?.collect()
        })
        .await
    }
}

#[async_trait]
impl NoteWriter for Database {
    async fn add(&self, text: &str) -> Result<Note, Failure> {
        let text = text.to_owned();
        self.run(move |connection| {
            connection.query_row("INSERT INTO notes (text) VALUES (?1) RETURNING note_id, text", [text], note)
        })
        .await
    }
}

#[async_trait]
impl DocumentIndex for Database {
    async fn search(&self, query: &str, limit: u32) -> Result<Vec<Hit>, Failure> {
        let words = match_expression(query);
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.run(move |connection| {
            let mut statement = connection.prepare(
                "SELECT document_id, title, snippet(documents, 2, '', '', '..', 24) FROM documents
                 WHERE documents MATCH ?1 ORDER BY rank LIMIT ?2",
            )?;
            let hit = |row: &Row<'_>| Ok(Hit { document_id: row.get(0)?, title: row.get(1)?, snippet: row.get(2)? });
            statement.query_map(params![words, limit], hit)?.collect()
        })
        .await
    }
}

/// Returns the words as an FTS5 expression. Each is quoted, so that no word is read as syntax.
fn match_expression(query: &str) -> String {
    let words = query.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ")
}

#[async_trait]
impl DoorLog for Database {
    async fn entries(&self) -> Result<Vec<DoorEntry>, Failure> {
        self.run(|connection| {
            let mut statement = connection.prepare("SELECT at, door, badge FROM door_log ORDER BY at")?;
            let entry = |row: &Row<'_>| Ok(DoorEntry { at: row.get(0)?, door: row.get(1)?, badge: row.get(2)? });
            statement.query_map([], entry)?.collect()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("toolbox.db")).unwrap();
        (folder, database)
    }

    #[tokio::test]
    async fn search_takes_words_and_no_syntax() {
        let (_folder, database) = database();
        for (query, found) in [("login", 4), ("rate limits", 1), ("\" OR *", 0), ("NEAR(", 0), ("retries", 1)] {
            let hits = database.search(query, 10).await.unwrap();
            assert!(hits.len() >= found, "{query}: {hits:?}");
        }
        assert_eq!(database.search("login", 1).await.unwrap().len(), 1);
        assert!(!database.search(&"login ".repeat(5000), 10).await.unwrap().is_empty());
        for query in
            ["\0", "\u{b2}", "title:login", "login*", "-login", "'; DROP TABLE documents", "a AND", "\u{1f600}"]
        {
            assert!(database.search(query, 10).await.is_ok(), "{query:?}");
        }
    }

    #[tokio::test]
    async fn a_task_is_created_once_and_deleted_once() {
        let (_folder, database) = database();
        let id = Uuid::from_u128(7);
        let new =
            Task { task_id: id, title: "x".into(), state: TaskState::Todo, due_date: None, owner_email: String::new() };
        database.create(new.clone()).await.unwrap();
        database.create(new).await.unwrap();
        let change = TaskChange { state: Some(TaskState::Done), ..TaskChange::default() };
        assert_eq!(database.update(id, change).await.unwrap().state, TaskState::Done);
        database.delete(id).await.unwrap();
        assert!(matches!(database.delete(id).await, Err(Failure::NotFound)));
    }
}
