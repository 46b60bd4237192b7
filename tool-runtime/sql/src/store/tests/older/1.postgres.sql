-- Documents: what changes. `scope` and `id` are escaped and clipped to what an index takes; `name` holds both as JSON
-- where one was clipped. `due` is in microseconds since 1970.
CREATE TABLE documents (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C",
    due BIGINT,
    body TEXT COLLATE "C" NOT NULL,
    UNIQUE (space, scope, id)
);
CREATE INDEX documents_number ON documents (space, number);
CREATE INDEX documents_due ON documents (space, due) WHERE due IS NOT NULL;

-- Records: what never changes, one hash chain per run. The body alone is what is hashed; the other columns are for
-- searching. `at` is in microseconds since 1970.
CREATE TABLE records (
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
CREATE INDEX records_call ON records (call_id);
