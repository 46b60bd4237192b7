CREATE TABLE tool_runtime_documents (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C",
    due BIGINT,
    body TEXT COLLATE "C" NOT NULL,
    parts TEXT COLLATE "C",
    lane TEXT COLLATE "C",
    leased_until BIGINT,
    UNIQUE (space, scope, id)
);
CREATE INDEX tool_runtime_documents_number ON tool_runtime_documents (space, number);
CREATE INDEX tool_runtime_documents_due ON tool_runtime_documents (space, due) WHERE due IS NOT NULL;
CREATE INDEX tool_runtime_documents_lane ON tool_runtime_documents (space, lane, due, leased_until)
    WHERE lane IS NOT NULL AND due IS NOT NULL;

CREATE TABLE tool_runtime_parts (
    scope TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, hash)
);

CREATE TABLE tool_runtime_records (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C",
    tenant TEXT COLLATE "C",
    decider TEXT COLLATE "C",
    at BIGINT NOT NULL,
    previous TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    UNIQUE (run_id, sequence)
);
CREATE INDEX tool_runtime_records_call ON tool_runtime_records (call_id);
CREATE INDEX tool_runtime_records_at ON tool_runtime_records (at, number);

CREATE TABLE tool_runtime_schema (version BIGINT NOT NULL);
INSERT INTO tool_runtime_schema (version) VALUES (4);
