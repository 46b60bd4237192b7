"""A model, a collector and the receiver behind it, on loopback."""

import gzip
import importlib.util
import json
import os
import socket
import sqlite3
import stat
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Server:
    """An HTTP server on its own port, until the block ends."""

    def __init__(self, answer):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                status, kind, text = answer(self.path, body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Receiver(Server):
    """Takes OTLP/HTTP and keeps every byte."""

    def __init__(self):
        self.raw, self.traces, self.metrics = b"", [], []
        super().__init__(self.take)

    def take(self, path, body):
        self.raw += body
        kept, kind = {
            "/v1/traces": (self.traces, ExportTraceServiceRequest),
            "/v1/metrics": (self.metrics, ExportMetricsServiceRequest),
        }[path]
        kept.append(kind.FromString(body))
        return 200, "application/x-protobuf", b""

    def spans(self):
        return [span for one in self.traces for r in one.resource_spans for s in r.scope_spans for span in s.spans]

    def resources(self):
        return [r.resource for one in self.traces for r in one.resource_spans] + [
            r.resource for one in self.metrics for r in one.resource_metrics
        ]

    def points(self):
        return [m for one in self.metrics for r in one.resource_metrics for s in r.scope_metrics for m in s.metrics]


class Model(Server):
    """Speaks Chat Completions by a script; before an answer it can lock a database, which the next request unlocks."""

    def __init__(self, script, database):
        self.script, self.database, self.lock = iter(script), database, None
        super().__init__(self.answer)

    def answer(self, _path, _body):
        if self.lock:
            self.lock.rollback()
            self.lock.close()
            self.lock = None
        step = next(self.script)
        if step.get("locked"):
            self.lock = sqlite3.connect(self.database, check_same_thread=False, isolation_level=None)
            self.lock.execute("BEGIN IMMEDIATE")
        status = step.get("status", 200)
        if status != 200:
            return status, "application/json", json.dumps({"error": {"message": step["text"]}}).encode()
        calls = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in step.get("calls", [])
        ]
        message = {"role": "assistant", "content": step.get("text")} | ({"tool_calls": calls} if calls else {})
        body = {
            "id": step["id"],
            "object": "chat.completion",
            "model": "model-2026",
            "choices": [{"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16,
                      "prompt_tokens_details": {"cached_tokens": 4},
                      "completion_tokens_details": {"reasoning_tokens": 2}},
        }
        return 200, "application/json", json.dumps(body).encode()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Collector:
    """Rotel in front of a receiver."""

    def __init__(self, receiver, folder):
        program = os.path.join(os.path.dirname(importlib.util.find_spec("rotel").origin), "rotel-agent")
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = open(os.path.join(folder, "collector.log"), "wb")
        self.command = [
            program, "start", "--otlp-http-endpoint", f"127.0.0.1:{self.port}",
            "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}", "--exporter", "otlp",
            "--otlp-exporter-endpoint", receiver.url, "--otlp-exporter-protocol", "http",
            "--pid-file", os.path.join(folder, "collector.pid"),
        ]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if self.process.poll() is not None:
                raise RuntimeError(f"the collector ended: {open(self.log.name).read()}")
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        self.__exit__()
        raise RuntimeError("the collector does not listen")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
