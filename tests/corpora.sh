#!/usr/bin/env bash
# Runs the large corpora (one argument: their folder) through the command line and the corpus program, and scores them.
set -euo pipefail
corpora=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --release -q -p toolbox -p tests --bins
bin=${CARGO_TARGET_DIR:-target}/release
echo "== calls, through the command line"
"$bin/toolbox" hydrate --tools "$corpora/dynamic-tools.jsonl" --calls "$corpora/calls.jsonl" > "$out/calls.jsonl"
"$bin/score" calls "$corpora/calls.jsonl" "$out/calls.jsonl" | grep -v '^  '
echo "== schema-suite"
"$bin/corpus" schema-suite < "$corpora/schema-suite.jsonl" > "$out/schema-suite.jsonl"
"$bin/score" schema-suite "$corpora/schema-suite.jsonl" "$out/schema-suite.jsonl" | grep -v '^  '
for kind in redaction policy; do
    "$bin/corpus" "$kind" < "$corpora/$kind.jsonl" > "$out/$kind.jsonl"
    ! grep -q '"error"' "$out/$kind.jsonl"
done
