"""Kills the example at every place that it comes by, and checks what is left."""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CALLS = ["first", "second", "third", "fourth", "fifth"]
ANSWER = "All parts are ordered."
# Each has a server of its own.
LANES = 3


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(url, body=None, headers=(), timeout=30):
    """The status and the body; status 0 if nobody answers in time."""
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(url, data=data, headers={"content-type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(made, timeout=timeout) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0, ""


def until(what, seconds, done):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"in vain for {seconds} s: {what}")


class Restate:
    """The server, on loopback, with a folder of its own."""

    def __init__(self, home):
        self.ingress, self.admin, fabric = (free_port() for _ in range(3))
        settings = {
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_ADVERTISED_HOST": "127.0.0.1",
            "RESTATE_BIND_PORT": str(fabric),
            "RESTATE_INGRESS__BIND_PORT": str(self.ingress),
            "RESTATE_ADMIN__BIND_PORT": str(self.admin),
            "RESTATE_ADMIN__DISABLE_WEB_UI": "true",
            # Nothing is reported to anybody.
            "RESTATE_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "1",
            "RESTATE_DEFAULT_NUM_PARTITIONS": "1",
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "128 MiB",
            "RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL": "50ms",
            "RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL": "500ms",
            "RESTATE_LOG_FILTER": "warn",
        }
        self.log = open(home / "restate.log", "w")
        arguments = [os.environ["RESTATE_SERVER"], "--no-logo", "--node-name", "check", "--base-dir", home / "restate"]
        self.process = subprocess.Popen(arguments, env={**os.environ, **settings}, stdout=self.log, stderr=self.log)

    def ready(self):
        until("the server", 60, lambda: request(f"http://127.0.0.1:{self.admin}/health")[0] == 200)
        until("the ingress", 60, lambda: request(f"http://127.0.0.1:{self.ingress}/restate/health")[0] == 200)

    def register(self, port):
        # A process in which nobody is killed is found anew.
        body = {"uri": f"http://127.0.0.1:{port}", "force": True}
        status, text = request(f"http://127.0.0.1:{self.admin}/deployments", body)
        assert status in (200, 201), text

    def call(self, key, handler, body, headers=()):
        # The server holds a request for as long as the endpoint is down, which is for us to start again.
        return request(f"http://127.0.0.1:{self.ingress}/Fleet/{key}/{handler}", body, headers, 1)

    def output(self, key):
        status, text = request(f"http://127.0.0.1:{self.ingress}/restate/workflow/Fleet/{key}/output")
        return (status, text) if status not in (0, 470) else None


class Endpoint:
    """The example's process, started again after it is killed."""

    def __init__(self, data, port, store):
        self.data, self.port, self.store, self.process = data, port, store, None
        data.mkdir()
        self.log = open(data / "log", "a")

    def start(self, kill=None):
        settings = {
            "FLEET_DATA": str(self.data),
            "FLEET_LISTEN": f"127.0.0.1:{self.port}",
            "FLEET_STORE": self.store,
            "FLEET_LEASE_SECONDS": "1",
            "FLEET_CROSSINGS": "1",
            "RUST_LOG": "warn",
        }
        if kill is not None:
            settings["FLEET_KILL"] = str(kill)
        self.process = subprocess.Popen(
            [os.environ["FLEET"]], env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=self.log
        )
        assert self.process.stdout.readline().startswith(b"listening"), (self.data / "log").read_text()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self.process:
            self.process.wait()
            self.process.stdout.close()

    def crossings(self):
        path = self.data / "crossings"
        return path.read_text().splitlines() if path.exists() else []

    def records(self):
        """Checks the chains, too."""
        made = subprocess.run([os.environ["FLEET"], "records"], env={**os.environ, "FLEET_DATA": str(self.data)},
                              capture_output=True, text=True, timeout=60)
        assert made.returncode == 0, made.stderr
        return [json.loads(line) for line in made.stdout.splitlines()]

    def effects(self):
        return collections.Counter(line.split()[1] for line in (self.data / "effects").read_text().splitlines())


def converse(restate, endpoint, key, kill):
    """One conversation, whose process is killed at this place. Returns its answer, and where it was."""
    endpoint.start(kill)
    restate.register(endpoint.port)
    status, text = restate.call(key, "run/send", "Order what is missing.")
    assert status in (200, 202), text
    decided = killed = False
    place = None
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not killed and endpoint.process.poll() is not None:
            assert endpoint.process.returncode == -9, (endpoint.data / "log").read_text()
            killed, place = True, endpoint.crossings()[-1]
            endpoint.stop()
            endpoint.start()
        if output := restate.output(key):
            assert killed == (kill is not None), "it was to be killed"
            assert output[0] == 200, output
            return json.loads(output[1]), place
        if not decided:
            decision = {"call": "third", "approve": True}
            status, text = restate.call(key, "decide", decision, {"x-principal": "grace"})
            decided = status in (200, 202, 204, 409)
            assert decided or status in (0, 404), (status, text)
        time.sleep(0.05)
    raise AssertionError((endpoint.data / "log").read_text() + f"\nno end: {key} killed at {kill}")


def outcomes(records):
    calls = [record["call"] for record in records if "call" in record]
    return [(call["tool_call_id"], call["outcome"]) for call in calls]


def deciders(records):
    return [record["decision"]["decider"]["principal"] for record in records if "decision" in record]


class Lane:
    """A server of its own, with the endpoints that it calls."""

    def __init__(self, home):
        home.mkdir()
        self.home, self.endpoints, self.restate = home, [], Restate(home)

    def converse(self, key, kill, store="sqlite"):
        one = Endpoint(self.home / key, free_port(), store)
        self.endpoints.append(one)
        answer, place = converse(self.restate, one, key, kill)
        one.stop()
        assert answer == ANSWER, (key, answer)
        return one, place

    def stop(self):
        for one in self.endpoints:
            one.stop()
        self.restate.process.terminate()
        try:
            self.restate.process.wait(10)
        except subprocess.TimeoutExpired:
            self.restate.process.kill()
            self.restate.process.wait()
        self.restate.log.close()


def killed(lane, kill, place):
    """Kills the process at one place. Returns how many calls have an unknown outcome."""
    key = f"kill-{kill}"
    one, at = lane.converse(key, kill)
    assert at == place, (key, at, place)
    records, effects = one.records(), one.effects()
    said = outcomes(records)
    assert [call for call, _ in said] == CALLS, (key, place, said)
    for call, outcome in said:
        assert effects[call] <= 1, (key, place, "twice", effects)
        assert outcome in ("ok", "outcome_unknown"), (key, place, said)
        assert outcome != "ok" or effects[call] == 1, (key, place, "not done", said, effects)
    lost = [call for call, outcome in said if outcome == "outcome_unknown"]
    within = place in ("before the effect", "after the effect")
    # A write is that of the ledger before a call begins, or that of the record after its end.
    assert len(lost) == 1 if within else not lost or (len(lost) == 1 and place == "after a write"), (key, place, said)
    assert deciders(records) == ["grace"], (key, records)
    return len(lost)


def without_ledger(lane, kill):
    one, _ = lane.converse(f"without-{kill}", kill, "memory")
    return sum(times > 1 for times in one.effects().values())


def main():
    started = time.monotonic()
    home = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
    lanes = []
    try:
        lanes += [Lane(home / f"lane-{at}") for at in range(LANES)]
        for lane in lanes:
            lane.restate.ready()
        whole, _ = lanes[0].converse("whole", None)
        places = list(enumerate(whole.crossings(), 1))
        assert outcomes(whole.records()) == [(call, "ok") for call in CALLS], whole.records()
        assert whole.effects() == collections.Counter(CALLS), whole.effects()

        def side_by_side(what, jobs):
            def some(at):
                return [what(lanes[at], *job) for job in jobs[at::LANES]]

            with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
                return sum(sum(done) for done in pool.map(some, range(LANES)))

        unknown = side_by_side(killed, places)
        print(f"killed at {len(places)} places: the same answer and records, no effect twice, {unknown} unknown")
        twice = side_by_side(without_ledger, [(kill,) for kill, place in places if place == "after the effect"])
        assert twice > 0, "without the ledger an effect happens twice"
        print(f"without the ledger: {twice} effects twice")
    except BaseException:
        print(f"see {home}", file=sys.stderr)
        raise
    finally:
        for lane in lanes:
            lane.stop()
    shutil.rmtree(home)
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
