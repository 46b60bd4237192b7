-- Versions 1 and 2 had tables without a prefix, and version 1 had no index by time.
ALTER TABLE documents RENAME TO tool_runtime_documents;
ALTER TABLE records RENAME TO tool_runtime_records;
DROP INDEX documents_number;
DROP INDEX documents_due;
DROP INDEX records_call;
DROP INDEX IF EXISTS records_at;
CREATE INDEX tool_runtime_documents_number ON tool_runtime_documents (space, number);
CREATE INDEX tool_runtime_documents_due ON tool_runtime_documents (space, due) WHERE due IS NOT NULL;
CREATE INDEX tool_runtime_records_call ON tool_runtime_records (call_id);
CREATE INDEX tool_runtime_records_at ON tool_runtime_records (at);
ALTER TABLE tool_runtime_documents ADD COLUMN parts TEXT;
CREATE TABLE tool_runtime_parts (
    scope TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, hash)
);
UPDATE tool_runtime_schema SET version = 3;
