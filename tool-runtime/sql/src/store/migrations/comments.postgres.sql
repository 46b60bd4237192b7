COMMENT ON TABLE tool_runtime_schema IS 'tool-runtime: the version of these tables, in one row';
COMMENT ON COLUMN tool_runtime_schema.version IS 'A process that knows another version writes nothing';

COMMENT ON TABLE tool_runtime_documents IS 'tool-runtime: runs, waiting calls, the ledger of calls, accounts, grants, posts, anchors, effects, legal holds and notices; rows change';
COMMENT ON COLUMN tool_runtime_documents.number IS 'The order in which documents were first written';
COMMENT ON COLUMN tool_runtime_documents.space IS 'The kind: run, post, waiting, decided, call, grant, account, anchor, digest_key, effect, slots, hold, notice';
COMMENT ON COLUMN tool_runtime_documents.scope IS 'What it belongs to, usually the id of a run; escaped, and truncated to 512 bytes';
COMMENT ON COLUMN tool_runtime_documents.id IS 'Its id in the scope; escaped, and truncated to 512 bytes';
COMMENT ON COLUMN tool_runtime_documents.name IS 'Scope and id as JSON where one of them was truncated';
COMMENT ON COLUMN tool_runtime_documents.due IS 'The time from which a worker or a sweep must process it, in microseconds since 1970';
COMMENT ON COLUMN tool_runtime_documents.body IS 'The document as JSON; it holds arguments of calls, sensitive ones too';
COMMENT ON COLUMN tool_runtime_documents.parts IS 'Of a run with a long text: the names of its parts, in their order';
COMMENT ON COLUMN tool_runtime_documents.lane IS 'Of a run: hashes of its tenant and its version; workers serve the lanes round-robin';
COMMENT ON COLUMN tool_runtime_documents.leased_until IS 'Of a run that a process has: when the lease ends, in microseconds since 1970';

COMMENT ON TABLE tool_runtime_parts IS 'tool-runtime: parts of the long texts of runs; a step writes the parts that are new';
COMMENT ON COLUMN tool_runtime_parts.scope IS 'The run, as in tool_runtime_documents';
COMMENT ON COLUMN tool_runtime_parts.hash IS 'The name: half of the SHA-256 of the part, as hexadecimal digits; + before it if the part is a piece of a list of names';
COMMENT ON COLUMN tool_runtime_parts.body IS 'The part; it holds arguments of calls, sensitive ones too';

COMMENT ON TABLE tool_runtime_records IS 'tool-runtime: what was called and decided, one hash chain for each run; only a purge removes rows, and only an erasure changes them';
COMMENT ON COLUMN tool_runtime_records.number IS 'The order in which records were appended; rolled-back transactions leave gaps';
COMMENT ON COLUMN tool_runtime_records.run_id IS 'The run; escaped, and truncated to 512 bytes';
COMMENT ON COLUMN tool_runtime_records.sequence IS 'The place in the chain of the run, from 0, without gaps';
COMMENT ON COLUMN tool_runtime_records.call_id IS 'The call; escaped, and truncated to 512 bytes';
COMMENT ON COLUMN tool_runtime_records.kind IS 'call, decision or retention';
COMMENT ON COLUMN tool_runtime_records.tool IS 'The name of the tool';
COMMENT ON COLUMN tool_runtime_records.outcome IS 'The outcome of the call, or the decision';
COMMENT ON COLUMN tool_runtime_records.principal IS 'For whom the run acts';
COMMENT ON COLUMN tool_runtime_records.tenant IS 'In which tenant the run acts';
COMMENT ON COLUMN tool_runtime_records.decider IS 'Who decided';
COMMENT ON COLUMN tool_runtime_records.at IS 'When it ended or was decided, in microseconds since 1970';
COMMENT ON COLUMN tool_runtime_records.previous IS 'The hash of the record before it in the chain';
COMMENT ON COLUMN tool_runtime_records.hash IS 'Seals this record and all before it in the chain';
COMMENT ON COLUMN tool_runtime_records.body IS 'The record as JSON; it alone is sealed, the other columns are for searching';
