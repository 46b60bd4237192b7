#!/usr/bin/env bash
# Counts the instructions and the allocations of each delta that a decoder reads, and of the same frames read into borrowed
# types by serde_json, with valgrind's callgrind:
#
#   tests/decoders.sh            prints a line for each response of the benchmark `decoders`, in chunks of 16 KB
#   tests/decoders.sh FOLDER     keeps callgrind's files in the folder, for callgrind_annotate --inclusive=yes
#
# The program is in the package `tests/instructions`, which is built with the default features.
# The counts of one build are the same from run to run, except for hash tables.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
mkdir -p "$out"
. tests/callgrind.sh
cargo build -q --release -p instructions --bin decoders
program=${CARGO_TARGET_DIR:-target}/release/decoders

echo "| response | \`serde_json\` typed | decoder | share | allocations: typed | decoder |"
echo "| --- | ---: | ---: | ---: | ---: | ---: |"
number=0
"$program" names | while read -r name; do
    for side in typed decoder; do
        count "$out/$number-$side.callgrind" decoders::counted 8000 "$program" "$side" "$number" > "$out/$side" < /dev/null
    done
    read -r typed typed_allocations < "$out/typed"
    read -r decoder decoder_allocations < "$out/decoder"
    awk -v name="$name" -v typed="$typed" -v decoder="$decoder" -v one="$typed_allocations" -v other="$decoder_allocations" \
        'BEGIN { printf "| %s | %d | %d | %.0f %% | %s | %s |\n", name, typed, decoder, 100 * typed / decoder, one, other }'
    number=$((number + 1))
done
