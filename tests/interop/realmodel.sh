#!/usr/bin/env bash
# The agent loop in conversation with a real small model behind a real server: three formats, streamed and whole,
# directly and through a gateway. Not a part of the tests: it takes about 7 minutes to set up, once, and some more to
# run. The model's text does not matter. The check compares how every turn ends.
#   realmodel.sh          everything is kept below $REALMODEL_HOME (default ~/.cache/realmodel)
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ../..)
if [ "${1:-}" != --inside ]; then
    export TOOLBOX=${TOOLBOX:-$root/target/debug/toolbox}
    (cd "$root" && cargo build -q -p toolbox)
    realmodel/setup.sh --litellm
    exec realmodel/serve.sh --litellm --seconds 900 -- "$PWD/realmodel.sh" --inside
fi
exec python3 realmodel/converse.py
