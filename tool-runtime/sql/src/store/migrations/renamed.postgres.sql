-- Versions 1 and 2 had tables without a prefix, and version 1 had no index by time.
ALTER TABLE documents RENAME TO tool_runtime_documents;
ALTER TABLE records RENAME TO tool_runtime_records;
ALTER SEQUENCE documents_number_seq RENAME TO tool_runtime_documents_number_seq;
ALTER SEQUENCE records_number_seq RENAME TO tool_runtime_records_number_seq;
ALTER INDEX documents_pkey RENAME TO tool_runtime_documents_pkey;
ALTER INDEX documents_space_scope_id_key RENAME TO tool_runtime_documents_space_scope_id_key;
ALTER INDEX documents_number RENAME TO tool_runtime_documents_number;
ALTER INDEX documents_due RENAME TO tool_runtime_documents_due;
ALTER INDEX records_pkey RENAME TO tool_runtime_records_pkey;
ALTER INDEX records_run_id_sequence_key RENAME TO tool_runtime_records_run_id_sequence_key;
ALTER INDEX records_call RENAME TO tool_runtime_records_call;
ALTER INDEX IF EXISTS records_at RENAME TO tool_runtime_records_at;
CREATE INDEX IF NOT EXISTS tool_runtime_records_at ON tool_runtime_records (at, number);
ALTER TABLE tool_runtime_documents ADD COLUMN parts TEXT COLLATE "C";
CREATE TABLE tool_runtime_parts (
    scope TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, hash)
);
UPDATE tool_runtime_schema SET version = 3;
