# Sourced by the scripts that count instructions. It is not a program.

command -v valgrind > /dev/null || {
    echo "valgrind is not installed, and it is what counts the instructions: install it (\`apt-get install valgrind\`)" >&2
    exit 1
}

# count FILE FUNCTION CALLS COMMAND..: prints the instructions and the allocations of one call, if the function
# FUNCTION, the only one that is counted, makes CALLS of them. callgrind writes to FILE, for callgrind_annotate.
count() {
    local file=$1 function=$2 calls=$3
    shift 3
    valgrind -q --tool=callgrind --callgrind-out-file="$file" --zero-before="$function" --dump-after="$function" "$@" 2> "$file.log" ||
        { cat "$file.log" >&2; exit 1; }
    # callgrind writes a line with the number of calls of one function by another.
    awk -v calls="$calls" '
        /^summary:|^totals:/ { instructions = $2 }
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
