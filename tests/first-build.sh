#!/usr/bin/env bash
# Measures the first build of the README's first program: its crates, the processor time of `cargo check` and of
# `cargo build`, and the size of the target folder. Measures also the first `cargo check` of a crate that has only the
# tool of this program.
#
#   tests/first-build.sh                    measures this tree
#   tests/first-build.sh OTHER ..           measures other trees of the repository, too, in turns, for example an older one
#
# Each program is made in a separate empty folder, with the commands of the README and path dependencies, and takes the
# tree's own lock file. FEATURES="agent toml" enables features of `tool-runtime`. The time is user and system time of all
# processes. It grows with other work on the machine, so compare figures of one run only.
set -euo pipefail
cd "$(dirname "$0")/.."
trees=("$PWD" "$@")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export CARGO_TERM_COLOR=never
unset CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG CARGO_INCREMENTAL
TIMEFORMAT='%U %S'

# measure FOLDER COMMAND: prints the seconds of processor time, and leaves cargo's messages in FOLDER.log.
measure() {
    { time (cd "$1" && cargo "$2" --offline > "$1.log" 2>&1); } 2>&1 | awk '{ printf "%.0f", $1 + $2 }'
}

# manifest FOLDER TREE: writes a manifest whose dependencies are those of every crate of tools.
manifest() {
    local features=
    for feature in ${FEATURES:-}; do features+="\"$feature\", "; done
    cat > "$1/Cargo.toml" << TOML
[package]
name = "first"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
tool-runtime = { path = "$2/tool-runtime", features = [$features] }
schemars = "1"
serde = { version = "1", features = ["derive"] }
TOML
    cp "$2/Cargo.lock" "$2/rust-toolchain.toml" "$1"
}

printf '%-40s %8s %8s %8s %8s %8s %8s\n' tree crates check build target tools check
for at in "${!trees[@]}"; do
    tree=$(realpath "${trees[$at]}")
    program=$out/$at
    mkdir -p "$program/src"
    awk '/^```rust$/ { on = 1; next } /^```$/ { if (on) exit } on' "$tree/README.md" > "$program/src/main.rs"
    manifest "$program" "$tree"
    echo 'tokio = { version = "1", features = ["macros", "rt", "time"] }' >> "$program/Cargo.toml"
    tools=$program-tools
    mkdir -p "$tools/src"
    sed '/^#\[tokio::main/,$d' "$program/src/main.rs" > "$tools/src/lib.rs"
    manifest "$tools" "$tree"
    tools_check=$(measure "$tools" check)
    # A crate that a build script needs is compiled as well as checked.
    tools_crates=$(sed -nE 's/^ *(Compiling|Checking) ([^ ]+ [^ ]+).*/\2/p' "$tools.log" | sort -u | wc -l)
    rm -rf "$tools/target"
    check=$(measure "$program" check)
    rm -rf "$program/target"
    build=$(measure "$program" build)
    crates=$(grep -c '^ *Compiling' "$program.log")
    size=$(du -sh "$program/target" | cut -f1)
    printf '%-40s %8s %7ss %7ss %8s %8s %7ss\n' \
        "$tree" "$crates" "$check" "$build" "$size" "$tools_crates" "$tools_check"
    rm -rf "$program/target"
done
