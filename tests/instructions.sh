#!/usr/bin/env bash
# Counts the instructions and the allocations of one call of the gate, and of the floor below it, with valgrind's callgrind:
#
#   tests/instructions.sh            prints a line for each of tiny, medium and large
#   tests/instructions.sh FOLDER     keeps callgrind's files in the folder, for callgrind_annotate --inclusive=yes
#   tests/instructions.sh --check    fails if a call costs more than tests/instructions.limits allows
#   tests/instructions.sh --accept   writes its counts into tests/instructions.limits
#
# The program is in a separate package, `tests/instructions`, which is built with the features `toml` and `wire`. The keys of
# hash tables are random, so that one run may look into a slot more than another: the counts differ by 0.2 %. Each is the
# least of RUNS runs (5 by default).
#
# The check allows 3 % more instructions, and not one allocation more. A call has grown if both its instructions and their
# ratio to the floor have: code of ours that costs more moves both. Another compiler, another `serde_json` or the C library
# of another machine moves the floor as well, and then one of the two stays where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
limits=tests/instructions.limits
mode=
case ${1:-} in
    --check | --accept) mode=$1 ;;
    -*) echo "usage: tests/instructions.sh [FOLDER | --check | --accept]" >&2; exit 2 ;;
esac
if [ -n "$mode" ] || [ $# -eq 0 ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
else
    out=$1
    mkdir -p "$out"
fi
. tests/callgrind.sh
cargo build -q --release -p instructions
program=${CARGO_TARGET_DIR:-target}/release/instructions

# measure SIDE SHAPE: prints the lowest number of instructions of a call over all runs, and its allocations.
measure() {
    for _ in $(seq "${RUNS:-5}"); do
        count "$out/$1-$2.callgrind" instructions::counted 20 "$program" "$1" "$2"
    done | sort -n | head -1
}

printf '%-8s %12s %12s %8s %12s %12s\n' '' floor gate ratio allocations gate
: > "$out/counts"
for shape in tiny medium large; do
    # Two steps, so that a program that fails ends the script.
    floor=$(measure floor "$shape")
    gate=$(measure gate "$shape")
    read -r floor floor_allocations <<< "$floor"
    read -r gate gate_allocations <<< "$gate"
    awk -v shape="$shape" -v floor="$floor" -v gate="$gate" -v one="$floor_allocations" -v other="$gate_allocations" \
        'BEGIN { printf "%-8s %12d %12d %8.2f %12.1f %12.1f\n", shape, floor, gate, gate / floor, one, other }'
    echo "$shape $floor $gate $gate_allocations" >> "$out/counts"
done

if [ "$mode" = --accept ]; then
    { echo "# shape, floor, gate: instructions of a call; allocations of the gate. Written by \`tests/instructions.sh --accept\`."
      cat "$out/counts"; } > "$limits"
elif [ "$mode" = --check ]; then
    awk '
        NR == FNR { if ($1 !~ /^#/) { floor[$1] = $2; gate[$1] = $3; allocations[$1] = $4 } next }
        !($1 in gate) { print $1 ": it has no line in tests/instructions.limits"; failed = $1; next }
        {
            grown = $3 / gate[$1]
            ratio = ($3 / $2) / (gate[$1] / floor[$1])
            if (grown > 1.03 && ratio > 1.03) {
                printf "%s: %d instructions, %.1f %% more than %d, and %.1f %% more of the floor\n", $1, $3, 100 * (grown - 1), gate[$1], 100 * (ratio - 1)
                failed = $1
            } else if (grown < 0.97 && ratio < 0.97) {
                printf "%s: %d instructions, where %d are accepted; accept fewer, or the gain can be lost again\n", $1, $3, gate[$1]
            }
            if ($4 > allocations[$1]) {
                printf "%s: %s allocations, more than %s\n", $1, $4, allocations[$1]
                failed = $1
            }
        }
        END {
            if (failed) {
                print "A call costs more than it did. `tests/instructions.sh FOLDER`, then"
                print "`callgrind_annotate --inclusive=yes FOLDER/gate-" failed ".callgrind.1`, shows where."
                print "If it is worth it: `tests/instructions.sh --accept`, the new figures into BENCHMARKS.md, and say in the commit what they buy."
                exit 1
            }
        }' "$limits" "$out/counts" >&2
    echo "instructions: within tests/instructions.limits"
fi
