#!/usr/bin/env bash
# Runs the large corpora (one argument: their folder) through the command line and the corpus program, and scores them.
# Fails when a profile falls below its threshold. PROFILE=release builds them for measuring time.
set -euo pipefail
corpora=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# The programs of the workspace's tests, so that nothing is built twice.
profile=${PROFILE:-dev}
cargo test -q --workspace --no-run --profile "$profile"
bin=${CARGO_TARGET_DIR:-target}/${profile/dev/debug}
score() { "$bin/score" "$1" "$corpora/$1.jsonl" "$out/$1.jsonl" "${@:2}" | { grep -v '^  ' || true; }; }
echo "== calls, through the command line"
"$bin/toolbox" hydrate --tools "$corpora/dynamic-tools.jsonl" --calls "$corpora/calls.jsonl" > "$out/calls.jsonl"
# One row of `core` sends emoji as a date. Formats are asserted, so it is refused.
score calls core=99.9 ids=100 limits=100 integrity=100 semantic=100 tolerant=100
echo "== retrieval"
"$bin/corpus" retrieval --tools "$corpora/dynamic-tools.jsonl" --pool "$corpora/retrieval-pool.jsonl" \
    < "$corpora/retrieval.jsonl" > "$out/retrieval.jsonl"
score retrieval recall@5=81.5 recall@20=92 nDCG@10=75 one-wanted-recall@5=85 short-recall@1=80
echo "== text"
for kind in text-hazards text-tool-calls; do
    "$bin/corpus" text < "$corpora/$kind.jsonl" > "$out/$kind.jsonl"
    score "$kind" text=100
done
for kind in schema-suite redaction policy; do
    echo "== $kind"
    "$bin/corpus" "$kind" < "$corpora/$kind.jsonl" > "$out/$kind.jsonl"
done
echo "== definitions"
"$bin/corpus" definitions < "$corpora/hostile-definitions.jsonl" > "$out/definitions.jsonl"
"$bin/score" definitions "$corpora/hostile-definitions.jsonl" "$out/definitions.jsonl" definitions=100
score schema-suite draft7=100 draft2020-12=100 formats=100
score redaction redaction=100
score policy policy=100
