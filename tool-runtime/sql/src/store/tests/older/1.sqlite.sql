-- Documents: what changes. `scope` and `id` are escaped and clipped to what an index takes; `name` holds both as JSON
-- where one was clipped. `due` is in microseconds since 1970.
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    due INTEGER,
    body TEXT NOT NULL,
    UNIQUE (space, scope, id)
);
CREATE INDEX documents_number ON documents (space, number);
CREATE INDEX documents_due ON documents (space, due) WHERE due IS NOT NULL;

-- Records: what never changes, one hash chain per run. The body alone is what is hashed; the other columns are for
-- searching. `at` is in microseconds since 1970.
CREATE TABLE records (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    outcome TEXT NOT NULL,
    principal TEXT,
    tenant TEXT,
    decider TEXT,
    at INTEGER NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run_id, sequence)
);
CREATE INDEX records_call ON records (call_id);
