"""The official SDKs, compared with the toolbox: they accept its requests, and assemble responses as it decodes them.

`$RUNS` is the folder with the bodies that `six-turns` sent. The bodies that the SDKs accepted are left there in
`checked.jsonl`, for the types of the SDKs for TypeScript.
"""

import copy
import json
import os
import pathlib
import sys

import assembled
import params
import toolbox
from replay import response

RUNS = pathlib.Path(os.environ["RUNS"])
FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
API = {"chat": "openai_chat", "responses": "openai_responses", "messages": "anthropic"}
CONTENT = {"ollama": "application/x-ndjson"}

wire = json.loads((FIXTURES / "wire/index.json").read_bytes())["cases"]
transcripts = json.loads((FIXTURES / "transcripts/index.json").read_bytes())
checked = []


class Score:
    def __init__(self, what: str):
        self.what, self.passed, self.failed, self.notes = what, 0, 0, []

    def run(self, name: str, check) -> None:
        try:
            check()
            self.passed += 1
        except Exception as error:
            self.failed += 1
            print(f"FAILED {self.what}: {name}: {type(error).__name__}: {str(error)[:500]}")

    def accepts(self, name: str, format: str, body: dict, check=params.check) -> None:
        """Checks that the SDK's types accept the body, or those of its beta."""

        def accepted() -> None:
            beta = check(format, body) == "beta"
            checked.append({"format": format, "beta": beta, "name": f"{self.what}: {name}", "body": body})

        self.run(name, accepted)

    def report(self) -> int:
        for note in self.notes:
            print(f"note: {note}")
        print(f"{self.what}: {self.passed} passed, {self.failed} failed")
        return self.failed if self.passed else 1


def requests() -> Score:
    score = Score("encoded requests")
    for case in (case for case in wire if case["kind"] == "request"):
        encoded = toolbox.encode(case["format"], "request", (FIXTURES / "wire" / case["input"]).read_bytes())
        if "error" not in encoded:
            body = params.whole(case["format"], encoded)
            score.accepts(case["id"], case["format"], body)
    for name in params.FORMATS:
        for options in [(), ("--strict",)]:
            body = params.whole(name, toolbox.export(name, *options))
            score.accepts(f"export {name} {options}", name, body)
    return score


def settings() -> Score:
    score = Score("encoded settings")
    for case in json.loads((FIXTURES / "settings/cases.json").read_bytes()):
        # Extra fields are what no type names.
        if "extra" in case["settings"]:
            continue
        for name in params.FORMATS:
            asked = {"tools": [], "settings": case["settings"]}
            encoded = toolbox.encode(name, "request", json.dumps(asked).encode())
            if "error" in encoded:
                continue
            score.accepts(f"{case['name']} {name}", name, params.whole(name, encoded))
    return score


def results() -> Score:
    score = Score("encoded results")
    for case in (case for case in wire if case["kind"] == "result"):
        encoded = toolbox.encode(case["format"], "result", (FIXTURES / "wire" / case["input"]).read_bytes())
        score.accepts(case["id"], case["format"], params.whole(case["format"], encoded))
    return score


def turns() -> Score:
    """The requests after turns with parts that go back. The tests compare them with the encoders."""
    score = Score("turns sent back")
    for case in (case for case in wire if case["kind"] == "turn" and case["class"] == "well_formed"):
        body = params.whole(case["format"], json.loads((FIXTURES / "wire" / case["expected_file"]).read_bytes()))
        score.accepts(case["id"], case["format"], body, params.check_turn)
    return score


def histories() -> Score:
    """Images and files in messages of users and in results: the golden bodies, which the encoders write."""
    score = Score("encoded files")
    for path in sorted(FIXTURES.glob("wire/*/history/*.expected.json")):
        name = path.parts[-3]
        body = params.whole(name, json.loads(path.read_bytes())["body"])
        score.accepts(f"{name} {path.stem}", name, body)
    return score


def conversations() -> Score:
    """The requests of an agent in conversations of six turns, and for typed answers."""
    score = Score("bodies of conversations")
    for name in params.FORMATS:
        for kind in ("jsonl", "strict.jsonl", "typed.jsonl"):
            lines = (RUNS / f"{name}.{kind}").read_text(encoding="utf-8").splitlines()
            if not lines:
                raise ValueError(f"an agent sent nothing: {name}.{kind}")
            for number, line in enumerate(lines, 1):
                score.accepts(f"{name}.{kind}:{number}", name, json.loads(line))
    return score


def spoiled(value, path=()):
    """Every body that differs by one value of a wrong type or one missing key."""
    if isinstance(value, dict):
        for key in value:
            yield (*path, key), "gone"
            yield (*path, key), "wrong"
            yield from spoiled(value[key], (*path, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from spoiled(one, (*path, at))


def refusals() -> Score:
    """The validators do not accept everything: spoiled bodies are refused, in each format, at several places."""
    score = Score("refused requests")
    for name in params.FORMATS:
        body = params.whole(name, toolbox.export(name))

        def refuses(body=body, name=name):
            params.check(name, body)
            refused = 0
            for path, how in spoiled(body):
                bad = copy.deepcopy(body)
                place = bad
                for key in path[:-1]:
                    place = place[key]
                if how == "gone":
                    del place[path[-1]]
                else:
                    place[path[-1]] = 3.5
                try:
                    params.check(name, bad)
                except Exception:
                    refused += 1
            if refused < 4:
                raise AssertionError(f"only {refused} spoiled bodies are refused")

        score.run(name, refuses)
    return score


def same(ours: dict, theirs) -> None:
    text, calls = theirs
    if ours["text"] != text:
        raise AssertionError(f"text {ours['text']!r}, the SDK has {text!r}")
    if len(ours["calls"]) != len(calls):
        raise AssertionError(f"{len(ours['calls'])} calls, the SDK has {len(calls)}")
    for call, (id, name, arguments) in zip(ours["calls"], calls):
        if call["name"] != name:
            raise AssertionError(f"name {call['name']!r}, the SDK has {name!r}")
        if call["id_source"] == "provider" and id and call["id"] != id:
            raise AssertionError(f"id {call['id']!r}, the SDK has {id!r}")
        theirs = arguments if isinstance(arguments, dict) else json.loads(arguments.strip() or "{}")
        if call["status"] == "ok" and call["arguments"] != theirs:
            raise AssertionError(f"arguments {call['arguments']}, the SDK has {theirs}")


def streams() -> Score:
    score = Score("assembled responses")

    def compare(name, format, body, recorded, stream, must, reads):
        """`must`: both have to agree. `reads`: the SDK has to read it at all."""
        ours = toolbox.decode(format, body)
        try:
            theirs = assembled.assemble(format, recorded, stream)
        except Exception as error:
            if reads:
                score.run(name, lambda: (_ for _ in ()).throw(error))
            else:
                score.notes.append(f"{name}: the SDK fails with {type(error).__name__}, we say {ours['finish']}")
            return
        if must:
            score.run(name, lambda: same(ours, theirs))
        else:
            try:
                same(ours, theirs)
            except (AssertionError, ValueError, TypeError, AttributeError) as error:
                score.notes.append(f"{name}: {error}"[:200])

    for case in (case for case in wire if case["kind"] == "stream"):
        body = (FIXTURES / "wire" / case["input"]).read_bytes()
        whole = body.lstrip()[:1] == b"{" and case["format"] != "ollama"
        content = "application/json" if whole else CONTENT.get(case["format"], "text/event-stream")
        sdk = any(name.split()[0] in ("openai", "anthropic", "ollama", "google-genai") and "npm" not in name for name in case.get("verified_with", []))
        must = case["class"] == "well_formed" and sdk
        compare(case["id"], case["format"], body, response(content, body), not whole, must, must)
    for case in transcripts:
        if case["status"] != 200:
            continue
        recorded = (FIXTURES / "transcripts" / case["response"]).read_bytes()
        body = recorded[case["body_offset"] :]
        if case["framing"] == "chunked":
            body = unchunked(body)
        format = API[case["api"]]
        ours = toolbox.decode(format, body)
        must = ours["finish"] in ("tool_calls", "stop") and all(call["status"] == "ok" for call in ours["calls"])
        # Some real servers send streams that their own SDKs refuse: that is reported, not counted.
        compare(case["id"], format, body, recorded, case["stream"], must, False)
    return score


def unchunked(body: bytes) -> bytes:
    out = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if length == 0:
            break
        out, body = out + body[:length], body[length + 2 :]
    return out


PARTS = (requests, settings, results, histories, turns, conversations, refusals, streams)

if __name__ == "__main__":
    failed = sum(part().report() for part in PARTS)
    with open(RUNS / "checked.jsonl", "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(one) + "\n" for one in checked)
    sys.exit(1 if failed else 0)
