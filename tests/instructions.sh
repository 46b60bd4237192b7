#!/usr/bin/env bash
# Counts the instructions and the allocations of one call of the gate, and of the floor below it, with valgrind's callgrind:
#
#   tests/instructions.sh            prints a line for each of tiny, medium and large
#   tests/instructions.sh FOLDER     keeps callgrind's files in the folder, for callgrind_annotate
#
# The counts of one build are the same from run to run.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
mkdir -p "$out"
program=$(cargo bench -q -p tests --bench instructions --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*instructions-[^"]*\)".*/\1/p' | tail -1)
. tests/callgrind.sh

# Prints instructions and allocations of one call.
measure() {
    count "$out/$1-$2.callgrind" instructions::counted 20 "$program" "$1" "$2"
}

printf '%-8s %12s %12s %8s %12s %12s\n' '' floor gate ratio allocations gate
for shape in tiny medium large; do
    read -r floor floor_allocations <<< "$(measure floor "$shape")"
    read -r gate gate_allocations <<< "$(measure gate "$shape")"
    awk -v shape="$shape" -v floor="$floor" -v gate="$gate" -v one="$floor_allocations" -v other="$gate_allocations" \
        'BEGIN { printf "%-8s %12d %12d %8.2f %12.1f %12.1f\n", shape, floor, gate, gate / floor, one, other }'
done
