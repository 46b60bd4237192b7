#!/usr/bin/env bash
# Measures the cost of compiling tools, compared with bare derives for the same arguments:
#
#   tests/compile-time.sh            prints the table of BENCHMARKS.md
#   tests/compile-time.sh FOLDER     keeps the two crates and their LLVM code in the folder
#
# Two crates of 50 functions with four arguments each are generated. One has `#[tool]` on them. In the other, each has a
# struct of its arguments that derives `Deserialize` and `JsonSchema`, and the code of an application without this
# library: it reads the arguments from text, calls the function, writes its output, and makes both schemas.
#
# The script counts the instructions of the compiler's process (with valgrind), its time (user and system; the crates
# take turns, and the fastest of RUNS counts, by default of 7), and the lines of LLVM code. The crate was never compiled
# before, and its dependencies are built; there is no debug information in either.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=$(realpath -m "${1:-$(mktemp -d)}")
[ $# -gt 0 ] || trap 'rm -rf "$out"' EXIT
mkdir -p "$out/tools/src" "$out/bare/src"
tools=${TOOLS:-50}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/compile-time CARGO_TERM_QUIET=true CARGO_PROFILE_DEV_DEBUG=none

# The code that both crates share: the types, and a function with this many arguments.
shared() {
    cat << 'RUST'
/// What is looked for.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind { Note, Task, Mail }

/// What was found.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Found { pub title: String, pub kind: Kind, pub count: u32 }
RUST
}

# The arguments, after `pub` for the fields of a struct.
arguments() {
    echo "/// The words to look for."
    echo "$1 text: String,"
    echo "/// The most that is returned."
    echo "$1 limit: u32,"
    echo "/// Only what has this tag."
    echo "$1 tag: Option<String>,"
    echo "/// Only what is of this kind."
    echo "$1 kind: Kind,"
}

body='Ok(Found { title: text + tag.as_deref().unwrap_or_default(), kind, count: limit })'
{
    shared
    for at in $(seq "$tools"); do
        echo "/// Looks for things of the sort number $at."
        echo "#[tool_runtime::tool(name = \"sort_$at""__find\", effect = read_only, redact = [\"title\", \"kind\", \"count\"])]"
        echo "pub fn find_$at("
        arguments ""
        echo ") -> Result<Found, tool_runtime::ToolError> { $body }"
    done
} > "$out/tools/src/lib.rs"
{
    shared
    for at in $(seq "$tools"); do
        echo "/// Looks for things of the sort number $at."
        echo "#[derive(serde::Deserialize, schemars::JsonSchema)]"
        echo "#[serde(deny_unknown_fields)]"
        echo "pub struct Arguments$at {"
        arguments pub
        echo "}"
        echo "pub fn find_$at(text: String, limit: u32, tag: Option<String>, kind: Kind)"
        echo "-> Result<Found, tool_runtime::ToolError> { $body }"
        echo "pub fn call_$at(text: &str) -> Option<String> {"
        echo "    let Arguments$at { text, limit, tag, kind } = serde_json::from_str(text).ok()?;"
        echo "    serde_json::to_string(&find_$at(text, limit, tag, kind).ok()?).ok()"
        echo "}"
        echo "pub fn schemas_$at() -> [schemars::Schema; 2] {"
        echo "    [schemars::schema_for!(Arguments$at), schemars::schema_for!(Found)]"
        echo "}"
    done
} > "$out/bare/src/lib.rs"

# Writes down the time of each run of the compiler; with COUNT, its instructions.
compiler=$(rustc --print sysroot)/bin/rustc
cat > "$out/rustc" << BASH
#!/usr/bin/env bash
if [ -n "\${COUNT:-}" ] && [[ \$* = *lib.rs* ]]; then
    exec valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --log-file="\$COUNT" "$compiler" "\${@:2}"
fi
TIMEFORMAT='%U %S'
{ time "\$@" 2>&3; } 3>&2 2>> "\$TIMES"
BASH
chmod +x "$out/rustc"
for crate in tools bare; do
    cat > "$out/$crate/Cargo.toml" << TOML
[package]
name = "$crate"
version = "0.0.0"
edition = "2024"
[dependencies]
tool-runtime = { path = "$root/tool-runtime" }
schemars = { version = "1", default-features = false, features = ["derive", "std"] }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
[workspace]
TOML
    cp Cargo.lock "$out/$crate/"
done

# counted CRATE COMMAND..: the instructions of the compiler for a crate that was never compiled.
counted() {
    local crate=$1
    shift
    cargo clean -q --manifest-path "$out/$crate/Cargo.toml" -p "$crate"
    COUNT=$out/count TIMES=/dev/null RUSTC_WORKSPACE_WRAPPER=$out/rustc cargo "$@" --manifest-path "$out/$crate/Cargo.toml"
    sed -n 's/.*I *refs: *//p' "$out/count" | tr -d ,
}

# once CRATE COMMAND..: the CPU time of the compiler for a crate that was never compiled, in milliseconds.
once() {
    local crate=$1
    shift
    cargo clean -q --manifest-path "$out/$crate/Cargo.toml" -p "$crate"
    : > "$out/times"
    TIMES=$out/times RUSTC_WORKSPACE_WRAPPER=$out/rustc cargo "$@" --manifest-path "$out/$crate/Cargo.toml"
    # The first line is the compiler's own introduction to cargo, if there is one.
    tail -1 "$out/times" | awk '{ printf "%.0f\n", ($1 + $2) * 1000 }'
}

compare() {
    local name=$1 run crate
    shift
    for run in $(seq 0 "${RUNS:-7}"); do
        for crate in bare tools; do
            # The first run builds the dependencies as well.
            once "$crate" "$@" > "$out/ms"
            [ "$run" = 0 ] || cat "$out/ms" >> "$out/$name-$crate"
        done
    done
    fastest() { sort -n "$out/$name-$1" | head -1; }
    awk -v name="$name" -v bare="$(fastest bare)" -v tools="$(fastest tools)" \
        'BEGIN { printf "| %s, time | %d ms | %d ms | %.2f |\n", name, bare, tools, tools / bare }'
    awk -v name="$name" -v bare="$(counted bare "$@")" -v tools="$(counted tools "$@")" \
        'BEGIN { printf "| %s, millions of instructions | %d | %d | %.2f |\n", name, bare / 1e6, tools / 1e6, tools / bare }'
}

rm -f "$out"/check-* "$out"/debug-*
echo "| $tools tools | bare derives | tools | ratio |"
echo "| --- | ---: | ---: | ---: |"
compare check check
compare debug build

# The compiler's code before any of its passes. A comment before each function names it.
for crate in bare tools; do
    cargo rustc --manifest-path "$out/$crate/Cargo.toml" -- -C codegen-units=1 -C no-prepopulate-passes --emit="llvm-ir=$out/$crate.ll"
    awk -v tools="$tools" '
        !inside && /^; / && !/^; Function Attrs/ { name = substr($0, 3) }
        /^define / { inside = 1; lines = 0 }
        inside { lines++ }
        inside && /^}/ {
            inside = 0
            gsub(/[0-9]+/, "N", name)
            sum[name] += lines; count[name]++
        }
        END { for (name in sum) printf "%d\t%d\t%s\n", sum[name], count[name], name }' "$out/$crate.ll" |
        sort -rn > "$out/$crate.lines"
done
lines() { awk -F '\t' '{ sum += $1 } END { print sum }' "$out/$1.lines"; }
awk -v bare="$(lines bare)" -v tools="$(lines tools)" -v count="$tools" \
    'BEGIN { printf "| LLVM lines a tool | %d | %d | %.2f |\n", bare / count, tools / count, tools / bare }'
