"""Conversations of the toolbox with the model that serve.sh runs. The checks: each ends with a known exit code, reports
`done` once for each message, and counts every call. The model's text is never checked."""

import collections
import json
import os
import subprocess
import sys
import tempfile

PROMPTS = [
    "What time is it in Oslo? Use the tool.",
    "List my open tasks.",
    "Mark task 0c5e9f3a-1b2d-4e6f-8a7b-9c0d1e2f3a4b as done.",
]
INSTRUCTIONS = """You answer with one tool call when a tool fits. Examples:
User: What time is it in Lisbon?
Assistant: <tool_call>{"name":"core__get_current_time","arguments":{"timezone":"Europe/Lisbon"}}</tool_call>
User: List my tasks.
Assistant: <tool_call>{"name":"tasks__list_tasks","arguments":{}}</tool_call>"""
DIRECT = (os.environ["OPENAI_BASE_URL"], os.environ["MODEL"], "OPENAI_API_KEY")
GATEWAY = (os.environ["LITELLM_BASE_URL"] + "/v1", os.environ["LITELLM_MODEL"], "LITELLM_KEY")
POLICY = """
allowed_tools = ["core__get_current_time", "tasks__list_tasks", "tasks__update_task"]
[budgets.run]
calls = 6
tokens = 30000
"""
KNOWN = {0, 1, 3, 4, 5, 6}


def converse(folder: str, url: str, model: str, key: str, form: str, options: list) -> collections.Counter:
    seen = collections.Counter()
    for prompt in PROMPTS:
        command = [os.environ["TOOLBOX"], "--json", "--data", f"{folder}/data", "--policy", f"{folder}/policy.toml"]
        command += ["chat", "--max-output-tokens", "120", "--model-url", url, "--model", model, "--key-env", key, "--format", form, *options]
        done = subprocess.run(command + ["--instructions", INSTRUCTIONS, prompt], capture_output=True, timeout=300, check=False)
        if done.returncode not in KNOWN:
            raise AssertionError(f"exit code {done.returncode}: {done.stderr.decode()}")
        *events, last = [json.loads(line) for line in done.stdout.decode().splitlines()]
        ends = [event["reason"] for event in events if event["type"] == "done"]
        if len(ends) != 1 or "summary" not in last:
            raise AssertionError(f"{len(ends)} times done: {done.stdout.decode()[-2000:]}")
        starts = [event["id"] for event in events if event["type"] == "tool_call_start"]
        results = [event["id"] for event in events if event["type"] in ("tool_call_result", "tool_call_suspended")]
        if sorted(starts) != sorted(results) or len(set(starts)) != len(starts):
            raise AssertionError(f"calls {starts} and results {results}")
        if sum(last["summary"]["calls"].values()) != len(starts):
            raise AssertionError(f"the summary counts {last['summary']['calls']}")
        seen[ends[0]] += 1
        for outcome, count in last["summary"]["calls"].items():
            seen[f"call {outcome}"] += count
    return seen


def main() -> int:
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/policy.toml", "w", encoding="utf-8") as policy:
            policy.write(POLICY)
        for way, (url, model, key) in [("direct", DIRECT), ("gateway", GATEWAY)]:
            for form in ["openai-chat", "openai-responses", "anthropic"]:
                for options in [[], ["--no-stream"]]:
                    name = f"{way} {form} {'whole' if options else 'streamed'}"
                    try:
                        seen = converse(folder, url, model, key, form, options)
                        passed += 1
                        print(f"{name}: {dict(seen)}", flush=True)
                    except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                        failed += 1
                        print(f"FAILED {name}: {error}", flush=True)
    print(f"conversations: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
