"""Spans and metrics of the toolbox, as they come out of a real collector."""

import os
import subprocess
import tempfile
import threading
import time

from servers import Collector, Model, Receiver, Server

TOOLBOX = os.path.realpath(os.environ["TOOLBOX"])
CANARY = "CANARY-5e0d"
POLICY = """
parallel = 4
allowed_tools = ["tasks__list_tasks", "notes__list_notes", "notes__add_note", "mail__send_email", "fs__read_file"]
"""
ERRORS = {"add": "execution_error", "read": "execution_error"}


def script():
    return [
        {"id": "resp-1", "text": f"{CANARY}-thinking", "calls": [
            ("tasks", "tasks__list_tasks", {}),
            ("notes", "notes__list_notes", {}),
        ]},
        {"id": "resp-2", "locked": True, "calls": [
            ("mail", "mail__send_email", {"to": ["a@example.com"], "subject": f"{CANARY}-subject", "body": f"{CANARY}-body"}),
            ("add", "notes__add_note", {"text": f"{CANARY}-note"}),
            ("read", "fs__read_file", {"path": f"{CANARY}-missing.txt"}),
            ("refused", "notes__add_note", {"txet": f"{CANARY}-misspelt"}),
        ]},
        {"id": "resp-3", "text": f"{CANARY}-answer"},
        {"status": 400, "text": f"{CANARY}-provider"},
    ]


def chat(folder, collector, model, prompt, code):
    environment = {
        "PATH": os.environ["PATH"], "HOME": folder, "XDG_CONFIG_HOME": folder,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector, "KEY": f"{CANARY}-key",
    }
    words = [TOOLBOX, "--policy", "policy.toml", "--data", "data", "--principal", f"{CANARY}-principal",
             "--log", "operators.log", "chat", "--no-stream", "--model-url", model, "--model", "model-1",
             "--format", "openai-chat", "--key-env", "KEY", prompt]
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if ended.returncode != code:
        raise AssertionError(f"the toolbox exits with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return ended


def converse(folder, collector):
    """Two requests: one with tools, of which some fail, and one that the provider refuses."""
    with open(os.path.join(folder, "policy.toml"), "w", encoding="utf-8") as policy:
        policy.write(POLICY)
    subprocess.run([TOOLBOX, "--policy", "policy.toml", "--data", "data", "call", "notes__list_notes"], cwd=folder,
                   env={"PATH": os.environ["PATH"], "HOME": folder}, capture_output=True, timeout=600, check=True)
    with Model(script(), os.path.join(folder, "data", "toolbox.db")) as model:
        answered = chat(folder, collector, model.url, f"{CANARY}-prompt", 0)
        assert f"{CANARY}-answer" in answered.stdout
        chat(folder, collector, model.url, f"{CANARY}-prompt", 1)
    with open(os.path.join(folder, "operators.log"), encoding="utf-8") as log:
        return log.read()


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in any_value.array_value.values]
    return getattr(any_value, kind)


def attributes(one):
    return {pair.key: value(pair.value) for pair in one.attributes}


def includes(found, expected):
    wrong = {key: (found.get(key), wanted) for key, wanted in expected.items() if found.get(key) != wanted}
    assert not wrong, f"{wrong} of {found}"


def check_spans(receiver):
    spans = receiver.spans()
    by_id = {span.span_id: span for span in spans}
    of = lambda operation: sorted(
        (span for span in spans if attributes(span).get("gen_ai.operation.name") == operation),
        key=lambda span: span.start_time_unix_nano)
    invoked, chats, tools = of("invoke_agent"), of("chat"), of("execute_tool")
    assert (len(invoked), len(chats), len(tools)) == (2, 4, 5), [span.name for span in spans]

    usage = {"gen_ai.usage.input_tokens": 33, "gen_ai.usage.output_tokens": 15,
             "gen_ai.usage.cache_read.input_tokens": 12, "gen_ai.usage.reasoning.output_tokens": 6}
    common = {"gen_ai.provider.name": "openai", "gen_ai.request.model": "model-1"}
    for span in invoked:
        assert (span.parent_span_id, span.kind) == (b"", span.SPAN_KIND_INTERNAL), span
        includes(attributes(span), common)
    includes(attributes(invoked[0]), usage)
    assert invoked[0].status.code == 0, invoked[0]
    for span, code in [(invoked[1], "model_refused"), (chats[3], "model_refused")]:
        includes(attributes(span), {"error.type": code})
        assert span.status.code == span.status.STATUS_CODE_ERROR

    for at, (span, finish) in enumerate(zip(chats, ["tool_calls", "tool_calls", "stop"])):
        assert (span.name, span.kind) == ("chat model-1", span.SPAN_KIND_CLIENT), span
        assert by_id[span.parent_span_id] is invoked[0] and span.trace_id == invoked[0].trace_id
        includes(attributes(span), common | {
            "gen_ai.response.id": f"resp-{at + 1}", "gen_ai.response.model": "model-2026",
            "gen_ai.response.finish_reasons": [finish], "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 4,
            "gen_ai.usage.reasoning.output_tokens": 2,
        })
    assert by_id[chats[3].parent_span_id] is invoked[1]

    calls = {attributes(span)["gen_ai.tool.call.id"]: span for span in tools}
    assert sorted(calls) == ["add", "mail", "notes", "read", "tasks"], sorted(calls)
    for id, span in calls.items():
        turn = chats[0] if id in ("tasks", "notes") else chats[1]
        assert by_id[span.parent_span_id] is turn, id
        # A turn ends with the model's answer, not with its calls.
        assert turn.end_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano, id
        name = attributes(span)["gen_ai.tool.name"]
        assert (span.name, span.kind) == (f"execute_tool {name}", span.SPAN_KIND_INTERNAL)
        includes(attributes(span), {"gen_ai.tool.type": "function", "error.type": ERRORS.get(id)})
        assert span.status.code == (span.status.STATUS_CODE_ERROR if id in ERRORS else 0), id
    for span in spans:
        assert not [key for key in attributes(span) if "arguments" in key or "result" in key or key.startswith("code.")]


def check_metrics(receiver):
    points = {}
    for metric in receiver.points():
        for point in metric.histogram.data_points:
            points.setdefault((metric.name, metric.unit), []).append(point)
    assert set(points) == {
        ("gen_ai.execute_tool.duration", "s"), ("gen_ai.client.operation.duration", "s"),
        ("gen_ai.invoke_agent.duration", "s"), ("gen_ai.client.token.usage", "{token}"),
    }, set(points)
    tools = points["gen_ai.execute_tool.duration", "s"]
    found = sorted((attributes(one)["gen_ai.tool.name"], attributes(one).get("error.type"), one.count) for one in tools)
    assert found == [
        ("fs__read_file", "execution_error", 1), ("mail__send_email", None, 1),
        ("notes__add_note", "execution_error", 1), ("notes__list_notes", None, 1), ("tasks__list_tasks", None, 1),
    ], found
    for one in tools:
        assert list(one.explicit_bounds)[:3] == [0.01, 0.02, 0.04] and one.sum >= 0 and one.max < 60, one
        assert set(attributes(one)) <= {"gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.agent.name", "error.type"}
    turns = points["gen_ai.client.operation.duration", "s"]
    assert sorted((attributes(one).get("error.type"), one.count) for one in turns if not attributes(one).get("error.type")) \
        == [(None, 3)]
    tokens = {attributes(one)["gen_ai.token.type"]: one.sum for one in points["gen_ai.client.token.usage", "{token}"]}
    assert tokens == {"input": 33, "output": 15}, tokens
    assert sum(one.count for one in points["gen_ai.invoke_agent.duration", "s"]) == 2


def check_values(receiver, log):
    # The output that operators requested on the command line has the reasons, so the canaries could have been exported.
    for reason in ["toolbox.db", f"{CANARY}-provider"]:
        assert reason in log, f"{reason} is not in the log: {log}"
    for text in [CANARY.encode(), b"toolbox.db"]:
        at = receiver.raw.find(text)
        assert at < 0, receiver.raw[max(0, at - 200):at + 60]
    for resource in receiver.resources():
        includes(attributes(resource), {"service.name": "toolbox"})


def is_complete(receiver):
    """Whether the spans and the metrics of both programs are there. A collector may send the metrics of both at once."""
    runs = [point.count for metric in receiver.points() if metric.name == "gen_ai.invoke_agent.duration"
            for point in metric.histogram.data_points]
    return len(receiver.spans()) >= 11 and sum(runs) >= 2


def through(collector_of):
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        with collector_of(receiver, folder) as collector:
            log = converse(folder, collector.url)
            deadline = time.monotonic() + 600
            while not is_complete(receiver) and time.monotonic() < deadline:
                time.sleep(0.1)
        check_spans(receiver)
        check_metrics(receiver)
        check_values(receiver, log)
        return len(receiver.raw)


class Straight:
    """No collector: every byte as the toolbox sends it."""

    def __init__(self, receiver, _folder):
        self.url = receiver.url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def unreachable():
    """An exporter without a collector reports that, changes nothing else, and does not delay the end."""
    over = threading.Event()
    with tempfile.TemporaryDirectory() as folder, Server(lambda *_: over.wait() and (200, "text/plain", b"")) as silent:
        for url in ["http://127.0.0.1:9", silent.url]:
            # The silent collector does not answer before the program has ended.
            ended = subprocess.run(
                [TOOLBOX, "--data", "data", "call", "notes__list_notes"], cwd=folder, capture_output=True, text=True,
                env={"PATH": os.environ["PATH"], "HOME": folder, "OTEL_EXPORTER_OTLP_ENDPOINT": url}, timeout=600)
            assert ended.returncode == 0 and "could not be exported" in ended.stderr, ended
        over.set()


if __name__ == "__main__":
    print(f"otlp: {through(Collector)} bytes through a collector")
    print(f"otlp: {through(Straight)} bytes as they were sent")
    unreachable()
    print("otlp: an unreachable collector holds up nothing")
