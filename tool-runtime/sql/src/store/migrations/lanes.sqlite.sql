-- Version 3 had no lanes of runs. The library fills them, from the documents that have a due time.
ALTER TABLE tool_runtime_documents ADD COLUMN lane TEXT;
ALTER TABLE tool_runtime_documents ADD COLUMN leased_until INTEGER;
CREATE INDEX tool_runtime_documents_lane ON tool_runtime_documents (space, lane, due, leased_until)
    WHERE lane IS NOT NULL AND due IS NOT NULL;
UPDATE tool_runtime_schema SET version = 4;
