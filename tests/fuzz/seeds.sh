#!/bin/sh
# Makes the first inputs of each target from the fixtures of the tests.
set -eu
cd "$(dirname "$0")"
for format in openai_chat openai_responses anthropic ollama gemini; do
    mkdir -p "corpus/$format" corpus/frames corpus/arguments
    for stream in ../fixtures/wire/"$format"/stream/*; do
        name=$(basename "$stream")
        # The byte in front says how the stream is cut.
        { printf '\007'; cat "$stream"; } >"corpus/$format/$name"
        # The frame in the middle, alone.
        sed -n 's/^data: //p; /^{/p' "$stream" | sed -n '3p' | tr -d '\r\n' >"corpus/frames/$format-$name"
    done
    cp ../fixtures/wire/"$format"/request/*.json corpus/arguments/
done
for format in gemini anthropic; do
    for response in ../fixtures/recorded/"$format"/*; do
        { printf '\007'; cat "$response"; } >"corpus/$format/$(basename "$response")"
    done
done
