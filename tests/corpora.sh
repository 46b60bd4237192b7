#!/usr/bin/env bash
# Runs the large corpora (one argument: their folder) through the command line and the corpus program, and scores them.
set -euo pipefail
corpora=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --release -q -p toolbox -p tests --bins
bin=${CARGO_TARGET_DIR:-target}/release
"$bin/toolbox" hydrate --tools "$corpora/dynamic-tools.jsonl" --calls "$corpora/calls.jsonl" > "$out/calls.jsonl"
"$bin/score" calls "$corpora/calls.jsonl" "$out/calls.jsonl"
for kind in redaction policy schema-suite; do
    "$bin/corpus" "$kind" < "$corpora/$kind.jsonl" > "$out/$kind.jsonl"
    "$bin/score" "$kind" "$corpora/$kind.jsonl" "$out/$kind.jsonl"
done
