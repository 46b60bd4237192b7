#!/bin/sh
# Makes the first inputs of each target from the fixtures of the tests.
set -eu
cd "$(dirname "$0")"
for format in openai_chat openai_responses anthropic ollama gemini; do
    mkdir -p "corpus/$format" corpus/frames corpus/arguments
    for stream in ../fixtures/wire/"$format"/stream/*; do
        name=$(basename "$stream")
        # The byte in front selects how the stream is cut.
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
# Bodies that chat UIs post, with a byte in front that selects the protocol: an answer of each kind, text and a file.
mkdir -p corpus/chat
file='data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII='
part() { printf '{"type":"tool-ns__%s","toolCallId":"%s","state":"%s","input":{},%s}' "$1" "$1" "$2" "$3"; }
{
    printf '\002{"id":"c","messages":[{"id":"m","role":"assistant","parts":['
    part ask approval-responded '"approval":{"id":"ask","approved":true,"reason":"Yes."}'
    printf ','
    part run output-available '"output":{"line":7}'
    printf ']},{"id":"u","role":"user","parts":[{"type":"text","text":"Look."},'
    printf '{"type":"file","mediaType":"image/png","filename":"a.png","url":"%s"}]}]}' "$file"
} >corpus/chat/use_chat
{
    printf '\001{"threadId":"t","runId":"r","messages":[{"id":"m","role":"assistant","toolCalls":['
    printf '{"id":"ask","type":"function","function":{"name":"ns__ask","arguments":"{}"}},'
    printf '{"id":"run","type":"function","function":{"name":"ns__run","arguments":"{}"}}]},'
    printf '{"id":"t1","role":"tool","toolCallId":"run","content":"{\\"line\\":7}"},'
    printf '{"id":"u","role":"user","content":[{"type":"text","text":"Look."},{"type":"image",'
    printf '"source":{"type":"data","mimeType":"image/png","value":"%s"}}]}],' "${file#*,}"
    printf '"resume":[{"interruptId":"ask","status":"resolved","payload":{"approved":false,"reason":"No."}}]}'
} >corpus/chat/ag_ui
mkdir -p corpus/pick
printf 'listTasks of a project, e-mails in HTTPServer_v2; na\303\257ve \346\235\261\344\272\254\343\201\256\345\244\251\346\260\227' >corpus/pick/words
# The lock of the example, and each of its tools next to a changed copy.
mkdir -p corpus/lock
lock=../../examples/toolbox/tools.lock
cp "$lock" corpus/lock/office
sed -n 's/^    "\(.*__.*\)": {$/\1/p' "$lock" | while read -r tool; do
    one=$(sed -n "/^    \"$tool\": {/,/^    }/p" "$lock" | sed '$s/,$//')
    printf '{"tools":{%s},"version":1}' "$one" >"corpus/lock/$tool"
    for edit in 's/"maximum": 50/"maximum": 20/' 's/"format": "uuid"/"pattern": "a+"/' 's/"string"/["string","null"]/' \
        's/"required"/"x-required"/' 's/"enum"/"anyOf"/' 's/"additionalProperties": false/"$ref": "#"/' 's/_only/_write/'; do
        at=$((${at:-0} + 1))
        { cat "corpus/lock/$tool" && printf '\000' && sed -e "$edit" "corpus/lock/$tool"; } >"corpus/lock/$tool-$at"
    done
done
# An output under an allowlist, and arguments that are broken in each way that a repairer knows.
mkdir -p corpus/redact corpus/repair
printf '{"allowlist":["id","rows.name","*.at"],"output":{"id":7,"rows":[{"name":"a","key":"b"}],"x":{"at":1.5}}}' >corpus/redact/row
printf '```json\n{"a":1}\n```' >corpus/repair/fence
printf '"{\\"a\\":\\"\\\\u00e9\\"}"' >corpus/repair/twice
printf '{"a":[1,2,],}\nDone.' >corpus/repair/junk
printf "{'a': 'b', 'c': [true]}" >corpus/repair/quotes
# The inputs that were found before.
for case in cases/*/*; do
    mkdir -p "corpus/$(basename "$(dirname "$case")")"
    cp "$case" "corpus/$(basename "$(dirname "$case")")/"
done
# With the folder of the large corpora as its argument: their rows too.
if [ $# -gt 0 ]; then
    split -l 1 -a 6 "$1/redaction.jsonl" corpus/redact/row-
    split -l 1 -a 6 "$1/hostile-definitions.jsonl" corpus/pick/row-
    head -n 2000 "$1/calls.jsonl" | split -l 1 -a 6 - corpus/arguments/row-
    split -l 1 -a 6 "$1/text-tool-calls.jsonl" corpus/repair/row-
fi
