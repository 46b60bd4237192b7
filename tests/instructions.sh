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
calls=20

# Prints instructions and allocations of one call: what is collected between entering and leaving `counted`. callgrind
# writes how often a function called another one.
count() {
    local file="$out/$1-$2.callgrind"
    valgrind -q --tool=callgrind --callgrind-out-file="$file" \
        --zero-before=instructions::counted --dump-after=instructions::counted \
        "$program" "$1" "$2" 2> "$out/valgrind.log" || { cat "$out/valgrind.log" >&2; exit 1; }
    awk -v calls=$calls '
        /^summary:/ { instructions = $2 }
        /^(c?fn)=\([0-9]+\)/ {
            split($0, part, /[()]/)
            name = substr($0, index($0, ")") + 2)
            if (name != "") names[part[2]] = name
            called = names[part[2]]
        }
        /^calls=/ {
            split($0, part, /[= ]/)
            if (called ~ /^(malloc|calloc|realloc|memalign|aligned_alloc|posix_memalign)(@|$)/) allocations += part[2]
        }
        END { printf "%.0f %.1f\n", instructions / calls, allocations / calls }' "$file.1"
}

printf '%-8s %12s %12s %8s %12s %12s\n' '' floor gate ratio allocations gate
for shape in tiny medium large; do
    read -r floor floor_allocations <<< "$(count floor "$shape")"
    read -r gate gate_allocations <<< "$(count gate "$shape")"
    awk -v shape="$shape" -v floor="$floor" -v gate="$gate" -v one="$floor_allocations" -v other="$gate_allocations" \
        'BEGIN { printf "%-8s %12d %12d %8.2f %12.1f %12.1f\n", shape, floor, gate, gate / floor, one, other }'
done
