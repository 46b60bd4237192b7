COMMENT ON TABLE tool_runtime_schema IS 'tool-runtime: the version of these tables, in one row';
COMMENT ON COLUMN tool_runtime_schema.version IS 'A process that expects another version writes nothing';

COMMENT ON TABLE tool_runtime_documents IS 'tool-runtime: runs, waiting calls, the ledger of calls, accounts, grants, posts, anchors, effects, legal holds and notices; rows change';
COMMENT ON COLUMN tool_runtime_documents.number IS 'The order in which documents were first written';
COMMENT ON COLUMN tool_runtime_documents.space IS 'The kind: run, post, waiting, decided, call, grant, account, anchor, digest_key, effect, slots, hold, notice';
COMMENT ON COLUMN tool_runtime_documents.scope IS 'The id of the run, or of another owner; escaped; of more than 512 bytes, the first 256 and a hash';
COMMENT ON COLUMN tool_runtime_documents.id IS 'The id in the scope; escaped; of more than 512 bytes, the first 256 and a hash';
COMMENT ON COLUMN tool_runtime_documents.name IS 'Scope and id as JSON if one of them was cut';
COMMENT ON COLUMN tool_runtime_documents.due IS 'The time from which a worker or a sweep must process it, in microseconds since 1970';
COMMENT ON COLUMN tool_runtime_documents.body IS 'The document as JSON; it contains arguments of calls, also sensitive ones';
COMMENT ON COLUMN tool_runtime_documents.parts IS 'The names of the parts of a long text, in order; or the names of the pieces of this list';
COMMENT ON COLUMN tool_runtime_documents.lane IS 'Hashes of the tenant (without one, of the principal) and of the version of a run; workers serve the lanes round-robin';
COMMENT ON COLUMN tool_runtime_documents.leased_until IS 'The end of the lease of a run, in microseconds since 1970';

COMMENT ON TABLE tool_runtime_parts IS 'tool-runtime: parts of the long texts of runs; a write adds only new parts';
COMMENT ON COLUMN tool_runtime_parts.scope IS 'The run, as in tool_runtime_documents';
COMMENT ON COLUMN tool_runtime_parts.hash IS 'The name: half of the SHA-256 of the part, as hexadecimal digits; + before it if the part is a piece of a list of names';
COMMENT ON COLUMN tool_runtime_parts.body IS 'The part; it contains arguments of calls, also sensitive ones';

COMMENT ON TABLE tool_runtime_records IS 'tool-runtime: the records of calls and decisions, one hash chain for each run; only a purge removes rows, and only an erasure changes them';
COMMENT ON COLUMN tool_runtime_records.number IS 'The order in which records were appended; rolled-back transactions leave gaps';
COMMENT ON COLUMN tool_runtime_records.run_id IS 'The run; escaped; of more than 512 bytes, the first 256 and a hash';
COMMENT ON COLUMN tool_runtime_records.sequence IS 'The place in the chain of the run, from 0, without gaps';
COMMENT ON COLUMN tool_runtime_records.call_id IS 'The call; escaped; of more than 512 bytes, the first 256 and a hash';
COMMENT ON COLUMN tool_runtime_records.kind IS 'call, decision or retention';
COMMENT ON COLUMN tool_runtime_records.tool IS 'The name of the tool';
COMMENT ON COLUMN tool_runtime_records.outcome IS 'The outcome of the call, or the decision';
COMMENT ON COLUMN tool_runtime_records.principal IS 'The principal of the run';
COMMENT ON COLUMN tool_runtime_records.tenant IS 'The tenant of the run';
COMMENT ON COLUMN tool_runtime_records.decider IS 'The principal who decided';
COMMENT ON COLUMN tool_runtime_records.at IS 'The time of the end of the call or of the decision, in microseconds since 1970';
COMMENT ON COLUMN tool_runtime_records.previous IS 'The hash of the record before it in the chain';
COMMENT ON COLUMN tool_runtime_records.hash IS 'The hash of this record and of all records before it in the chain';
COMMENT ON COLUMN tool_runtime_records.body IS 'The record as JSON; only this column is hashed, the others are for searching';
