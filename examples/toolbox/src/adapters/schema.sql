CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('todo', 'in_progress', 'blocked', 'done')),
    due_date TEXT,
    owner_email TEXT NOT NULL
) STRICT;

CREATE TABLE notes (
    note_id INTEGER PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;

CREATE VIRTUAL TABLE documents USING fts5(document_id UNINDEXED, title, body, tokenize = 'porter unicode61');

CREATE TABLE events (
    account TEXT NOT NULL,
    date TEXT NOT NULL,
    title TEXT NOT NULL,
    attendees TEXT NOT NULL
) STRICT;

CREATE TABLE door_log (
    at TEXT NOT NULL,
    door TEXT NOT NULL,
    badge TEXT NOT NULL
) STRICT;
