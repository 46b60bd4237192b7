-- Documents: what changes. `scope` and `id` are escaped and clipped to what an index takes; `name` holds both as JSON
-- where one was clipped. `due` is in microseconds since 1970. Runs have a `lane`, and `leased_until` if a process has them.
CREATE TABLE tool_runtime_documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    due INTEGER,
    body TEXT NOT NULL,
    parts TEXT,
    lane TEXT,
    leased_until INTEGER,
    UNIQUE (space, scope, id)
);
CREATE INDEX tool_runtime_documents_number ON tool_runtime_documents (space, number);
CREATE INDEX tool_runtime_documents_due ON tool_runtime_documents (space, due) WHERE due IS NOT NULL;
CREATE INDEX tool_runtime_documents_lane ON tool_runtime_documents (space, lane, due, leased_until)
    WHERE lane IS NOT NULL AND due IS NOT NULL;

-- Parts: what the text of a run is made of, when it is long. `parts` of its document lists their hashes in their order.
CREATE TABLE tool_runtime_parts (
    scope TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, hash)
);

-- Records: what never changes, one hash chain per run. The body alone is what is hashed; the other columns are for
-- searching. `at` is in microseconds since 1970.
CREATE TABLE tool_runtime_records (
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
CREATE INDEX tool_runtime_records_call ON tool_runtime_records (call_id);
-- Records are found by their time; the index has their numbers, too.
CREATE INDEX tool_runtime_records_at ON tool_runtime_records (at);

CREATE TABLE tool_runtime_schema (version BIGINT NOT NULL);
INSERT INTO tool_runtime_schema (version) VALUES (4);
