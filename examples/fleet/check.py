"""Kills or stops the example at each numbered place of a conversation, and checks the result."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import threading
import urllib.request

CALLS = ["look", "order", "pay", "scan", "last"]
# The calls with an effect.
EFFECTS = ["order", "pay", "last"]
# The calls of the script `Reserve it.`: one can be looked up, and one may be repeated.
SETTLED = ["reserve", "confirm"]
AT_EFFECTS = ("before the effect", "after the effect")
# The decider, from the tenant of the runs.
GRACE = {"x-principal": "grace", "x-tenant": "acme"}
ANSWER = "All is done."
# The places at which a process is stopped while another process takes over.
STOPS = ["before the read", "after the read", "before the effect", "after the effect", "after the model", "after a write"]
# The number of threads that check at the same time, each with a separate server.
LANES = 3


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(url, body=None, headers=(), timeout=30):
    """Returns the status and the body; status 0 if there is no answer in time."""
    headers = dict(headers)
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["content-type"] = "application/json"
    made = urllib.request.Request(url, data=data, headers=headers)
    try:
        try:
            response = urllib.request.urlopen(made, timeout=timeout)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, response.read().decode()
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError):
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
    """The server, on loopback, with a separate folder."""

    def __init__(self, home):
        self.ingress, self.admin, fabric = (free_port() for _ in range(3))
        self.settings = {
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_BIND_IP": "127.0.0.1",
            "RESTATE_ADVERTISED_HOST": "127.0.0.1",
            "RESTATE_BIND_PORT": str(fabric),
            "RESTATE_INGRESS__BIND_PORT": str(self.ingress),
            "RESTATE_ADMIN__BIND_PORT": str(self.admin),
            "RESTATE_ADMIN__DISABLE_WEB_UI": "true",
            # Telemetry is off.
            "RESTATE_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "1",
            "RESTATE_DEFAULT_NUM_PARTITIONS": "1",
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "128 MiB",
            "RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL": "50ms",
            "RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL": "500ms",
            "RESTATE_LOG_FILTER": "warn",
        }
        self.home, self.log = home, open(home / "restate.log", "w")
        self.start()

    def start(self):
        base = self.home / "restate"
        arguments = [os.environ["RESTATE_SERVER"], "--no-logo", "--node-name", "check", "--base-dir", base]
        settings = {**os.environ, **self.settings}
        self.process = subprocess.Popen(arguments, env=settings, stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ready(self):
        until("the server", 600, lambda: request(f"http://127.0.0.1:{self.admin}/health")[0] == 200)
        until("the ingress", 600, lambda: request(f"http://127.0.0.1:{self.ingress}/restate/health")[0] == 200)

    def register(self, port):
        # `force` registers the endpoint again after a restart.
        body = {"uri": f"http://127.0.0.1:{port}", "force": True}
        status, text = request(f"http://127.0.0.1:{self.admin}/deployments", body)
        assert status in (200, 201), text

    def call(self, key, handler, body, headers=(), timeout=30):
        return request(f"http://127.0.0.1:{self.ingress}/Fleet/{key}/{handler}", body, headers, timeout)

    def questions(self, key):
        status, text = self.call(key, "questions", None, timeout=1)
        return json.loads(text) if status == 200 else []

    def output(self, key):
        status, text = request(f"http://127.0.0.1:{self.ingress}/restate/workflow/Fleet/{key}/output")
        return (status, text) if status not in (0, 470) else None


class Endpoint:
    """The example's process, started again after it is killed."""

    def __init__(self, data, port, store):
        self.data, self.port, self.store, self.process = data, port, store, None
        data.mkdir(exist_ok=True)
        self.log = open(data / "log", "a")

    def start(self, **more):
        settings = {
            "FLEET_DATA": str(self.data),
            "FLEET_LISTEN": f"127.0.0.1:{self.port}",
            "FLEET_STORE": self.store,
            "FLEET_LEASE_SECONDS": "1",
            "FLEET_CROSSINGS": "1",
            "RUST_LOG": "warn",
        }
        settings |= {name: str(value) for name, value in more.items() if value is not None}
        self.process = subprocess.Popen(
            [os.environ["FLEET"]], env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=self.log
        )
        assert self.process.stdout.readline().startswith(b"listening"), (self.data / "log").read_text()

    def is_stopped(self):
        return pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
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
                              capture_output=True, text=True, timeout=600)
        assert made.returncode == 0, made.stderr
        return [json.loads(line) for line in made.stdout.splitlines()]

    def effects(self):
        return collections.Counter(line.split()[1] for line in (self.data / "effects").read_text().splitlines())


class Proxy:
    """Forwards the server's connections to the current process, so that another process can replace it."""

    def __init__(self, target):
        self.target, self.inward, self.outward = target, [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                inward, _ = self.listener.accept()
                try:
                    outward = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    inward.close()
                    continue
                self.inward.append(inward)
                self.outward.append(outward)
                for pair in ((inward, outward), (outward, inward)):
                    threading.Thread(target=self.pump, args=pair, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def switch(self, target):
        # The earlier process keeps its connections until the end.
        self.target = target
        for inward in self.inward:
            with contextlib.suppress(OSError):
                inward.shutdown(socket.SHUT_RDWR)
            inward.close()
        self.inward = []

    def stop(self):
        self.listener.close()
        for one in self.inward + self.outward:
            one.close()


class Person:
    """The person who decides and answers for the client, first with a wrong answer, then with a right one."""

    def __init__(self, restate, key):
        self.restate, self.key = restate, key
        self.left = [
            ("decide", {"approve": True}),
            ("answer", {"call": "scan", "value": "no number"}),
            ("answer", {"call": "scan", "value": 10}),
        ]

    def act(self):
        if not self.left:
            return
        handler, body = self.left[0]
        if handler == "decide" and "question" not in body:
            asked = [question for question in self.restate.questions(self.key) if question.endswith(".pay")]
            if not asked:
                return
            body["question"] = asked[0]
        # The server holds a request as long as the endpoint is down, and this thread has to start it again.
        status, text = self.restate.call(self.key, handler, body, GRACE, timeout=1)
        # 409: an earlier request arrived, but its answer was lost; or the workflow has not processed the wrong answer
        # yet.
        looked_at = status == 409 and body.get("value") != 10
        if status in (200, 202, 204) or looked_at:
            self.left.pop(0)
        else:
            assert status in (0, 404, 409), (status, text)


def converse(restate, endpoint, key, kill=None, message="Order what is missing.", person=True, **settings):
    """Runs one conversation, and kills its process at this place. Returns its answer, and the name of the place."""
    endpoint.start(FLEET_KILL=kill, **settings)
    restate.register(endpoint.port)
    status, text = restate.call(key, "run/send", message)
    assert status in (200, 202), text
    person = Person(restate, key) if person else None
    killed = False
    place = None
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if not killed and endpoint.process.poll() is not None:
            assert endpoint.process.returncode == -9, (endpoint.data / "log").read_text()
            killed, place = True, endpoint.crossings()[-1]
            endpoint.stop()
            endpoint.start(**settings)
        if output := restate.output(key):
            # On a slow machine a lease is renewed, so there is a write more or less than in the counted run.
            assert killed or kill is None or len(endpoint.crossings()) < kill, "it was to be killed"
            assert output[0] == 200, output
            return json.loads(output[1]), place
        if person:
            person.act()
        time.sleep(0.05)
    raise AssertionError((endpoint.data / "log").read_text() + f"\nno end: {key} killed at {kill}")


def outcomes(records):
    calls = [record["call"] for record in records if "call" in record]
    return [(call["tool_call_id"], call["outcome"]) for call in calls]


def deciders(records):
    decisions = [record["decision"] for record in records if "decision" in record]
    return [((one.get("decider") or {}).get("principal"), one.get("refused") is not None) for one in decisions]


class Lane:
    """A separate server, with the endpoints that it calls."""

    def __init__(self, home):
        home.mkdir()
        self.home, self.endpoints, self.restate = home, [], Restate(home)

    def endpoint(self, key, store="sqlite"):
        one = Endpoint(self.home / key, free_port(), store)
        self.endpoints.append(one)
        return one

    def converse(self, key, kill, store="sqlite", **more):
        one = self.endpoint(key, store)
        answer, place = converse(self.restate, one, key, kill, **more)
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


def killed(lane, kill, _):
    """Kills the process at one place. Returns the number of calls with an unknown outcome."""
    key = f"kill-{kill}"
    one, place = lane.converse(key, kill)
    return checked(one, key, place)


def checked(one, key, place):
    """Checks the records and effects of a conversation. Returns the number of calls with an unknown outcome."""
    records, effects = one.records(), one.effects()
    said = outcomes(records)
    assert [call for call, _ in said] == CALLS, (key, place, said)
    for call, outcome in said:
        assert effects[call] <= 1, (key, place, "twice", effects)
        assert outcome in ("ok", "outcome_unknown"), (key, place, said)
        assert outcome != "ok" or effects[call] == (call in EFFECTS), (key, place, "not done", said, effects)
    lost = [call for call, outcome in said if outcome == "outcome_unknown"]
    within = place in AT_EFFECTS
    # The write is either the ledger's before a call begins, or the record's after its end.
    assert len(lost) == 1 if within else not lost or (len(lost) == 1 and place == "after a write"), (key, place, said)
    taken = [who for who, refused in deciders(records) if not refused]
    # The client's answer names no decider.
    assert taken == ["grace", None], (key, place, records)
    assert any(refused for _, refused in deciders(records)), (key, place, "the wrong answer")
    return len(lost)


def settled(one, key, before):
    """Checks the calls that can be looked up and repeated: none is unknown. `before` are the places that the process
    passed before it was killed or stopped. Returns whether an effect was looked up or repeated."""
    said, effects = outcomes(one.records()), one.effects()
    assert [call for call, _ in said] == SETTLED, (key, before, said)
    (_, reserved), (_, confirmed) = said
    lines = [line.split() for line in (one.data / "effects").read_text().splitlines()]
    keys = {line[-1] for line in lines if line[1] == "confirm"}
    assert (reserved, effects["reserve"]) in (("ok", 1), ("cancelled", 0)), (key, before, said, effects)
    assert confirmed == "ok" and 1 <= effects["confirm"] <= 2 and len(keys) == 1, (key, before, said, lines)
    if not before or before[-1] not in AT_EFFECTS:
        return 0
    is_first, had_effect = before.count("before the effect") == 1, before[-1] == "after the effect"
    looked = "after the look-up" in one.crossings()
    assert looked == is_first, (key, before, "a look-up")
    if is_first:
        assert reserved == ("ok" if had_effect else "cancelled"), (key, before, said)
    elif had_effect:
        assert effects["confirm"] == 2, (key, before, effects)
    return 1


def cut(lane, kill, _):
    """Kills the process in a call that can be looked up, or in one that may be repeated."""
    key = f"cut-{kill}"
    one, _ = lane.converse(key, kill, message="Reserve it.", person=False)
    return settled(one, key, one.crossings()[:kill])


def taken_over(lane, stop, _):
    """The same, with a process that is stopped while another one takes over, and then continued."""
    key = f"over-{stop}"
    after, passed = overtaken(lane, key, stop, "Reserve it.", None)
    return settled(after, key, passed)


def stopped(lane, stop, _):
    """Stops the process at one place, lets another one take over, and continues it."""
    key = f"stop-{stop}"
    after, passed = overtaken(lane, key, stop, "Order what is missing.", Person(lane.restate, key))
    # Renewals of leases are writes, too, so the number can belong to another place.
    return checked(after, key, passed[-1])


def overtaken(lane, key, stop, message, person):
    """Returns the other process, and the places that the stopped one had passed."""
    before = lane.endpoint(key)
    before.start(FLEET_STOP=stop)
    proxy = Proxy(before.port)
    lane.restate.register(proxy.port)
    status, text = lane.restate.call(key, "run/send", message)
    assert status in (200, 202), text
    after, end, output = None, time.monotonic() + 600, None
    while not output:
        assert time.monotonic() < end, (before.data / "log").read_text() + f"\nno end: {key}"
        if after is None and before.is_stopped():
            passed = before.crossings()
            after = lane.endpoint(key)
            after.start()
            proxy.switch(after.port)
        output = lane.restate.output(key)
        if person:
            person.act()
        time.sleep(0.05)
    assert output[0] == 200 and json.loads(output[1]) == ANSWER and after, (key, output)
    came_by = len(before.crossings())
    before.process.send_signal(signal.SIGCONT)
    with contextlib.suppress(AssertionError):
        until("what it still does", 0.5, lambda: len(before.crossings()) > came_by + 1)
    proxy.stop()
    before.stop()
    after.stop()
    return after, passed


def server_ends(lane, case, stop):
    """Kills Restate's server, and starts it again: while a conversation waits for a person, then for the client; or
    while a call runs. Returns 0."""
    key, restate = f"server-{case}-{stop}", lane.restate
    message = "Reserve it." if case == "settled" else "Order what is missing."
    one = lane.endpoint(key)
    one.start(FLEET_STOP=stop)
    restate.register(one.port)
    status, text = restate.call(key, "run/send", message)
    assert status in (200, 202), text
    person = None if case == "settled" else Person(restate, key)
    if stop is None:
        for tool in (".pay", ".scan"):
            asked = until(tool, 60, lambda: [asked for asked in restate.questions(key) if asked.endswith(tool)])
            restate.kill()
            restate.start()
            restate.ready()
            again = until("the question", 60, lambda: restate.questions(key))
            assert again == asked, (key, asked, again)
            if tool == ".pay":
                until("the decision", 60, lambda: person.act() or person.left[0][0] != "decide")
    else:
        until("the place", 60, one.is_stopped)
        restate.kill()
        one.process.send_signal(signal.SIGCONT)
        restate.start()
        restate.ready()
    output = until("the answer", 60, lambda: (person and person.act()) or restate.output(key))
    one.stop()
    assert output[0] == 200 and json.loads(output[1]) == ANSWER, (key, output)
    if case == "settled":
        settled(one, key, None)
    elif stop is None:
        checked(one, key, None)
    else:
        # The process still runs, so it may report the end of the call. Otherwise the call was dropped with the
        # connection.
        said, effects = dict(outcomes(one.records())), one.effects()
        assert list(said) == CALLS and said.pop("order") in ("ok", "outcome_unknown"), (key, said)
        assert set(said.values()) == {"ok"} and effects == collections.Counter(EFFECTS), (key, said, effects)
    return 0


def expired(lane, kill, _):
    """Nobody decides in time."""
    late = ("decide", {"question": "0" * 64 + ".late", "approve": True})
    return ends_late(lane, f"late-{kill}", kill, "Pay only.", "approval_expired", late)


def unanswered(lane, kill, _):
    """The client does not answer in time."""
    return ends_late(lane, f"client-{kill}", kill, "Scan only.", "cancelled", ("answer", {"call": "late", "value": 10}))


def ends_late(lane, key, kill, message, outcome, late):
    """The call of this message ends with the outcome, and its answer gets a 404 afterwards."""
    one, place = lane.converse(key, kill, message=message, person=False, FLEET_APPROVAL_SECONDS=1)
    records = one.records()
    assert outcomes(records) == [("late", outcome)], (key, place, records)
    assert not one.effects() and len(deciders(records)) == 1, (key, place, records)
    one.start()
    status, text = lane.restate.call(key, *late, GRACE)
    assert status == 404, (key, status, text)
    one.stop()
    return 0


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
        assert whole.effects() == collections.Counter(EFFECTS), whole.effects()
        checked(whole, "whole", None)
        late, _ = lanes[0].converse("late", None, message="Pay only.", person=False, FLEET_APPROVAL_SECONDS=1)
        late_places = list(enumerate(late.crossings(), 1))
        client, _ = lanes[0].converse("client", None, message="Scan only.", person=False, FLEET_APPROVAL_SECONDS=1)
        client_places = list(enumerate(client.crossings(), 1))
        known, _ = lanes[0].converse("known", None, message="Reserve it.", person=False)
        settled(known, "known", None)
        known_places = [(at, place) for at, place in enumerate(known.crossings(), 1) if place in AT_EFFECTS]

        def side_by_side(what, jobs):
            def some(at):
                return [what(lanes[at], *job) for job in jobs[at::LANES]]

            with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
                return sum(sum(done) for done in pool.map(some, range(LANES)))

        unknown = side_by_side(killed, places)
        print(f"killed at {len(places)} places: the same answer and records, no effect twice, {unknown} unknown")
        side_by_side(expired, late_places)
        print(f"nobody decides, killed at {len(late_places)} places: expired once, no effect, a late decision refused")
        side_by_side(unanswered, client_places)
        print(f"no answer of the client, killed at {len(client_places)} places: closed once, a late answer refused")
        ended = side_by_side(cut, known_places) + side_by_side(taken_over, known_places)
        assert ended > 0, "no call was cut short"
        print(f"killed and stopped in {ended} calls that can be looked up or repeated: none unknown")
        effect = {name: next(at for at, place in known_places if place == name) for name in AT_EFFECTS}
        first = next(at for at, place in places if place == "after the effect")
        server_ends_at = [("waits", None), ("settled", effect["after the effect"]), ("runs", first)]
        side_by_side(server_ends, server_ends_at)
        print(f"Restate's server killed in {len(server_ends_at)} conversations: the same questions, no effect twice")
        stops = [next((at, place) for at, place in places if place == kind) for kind in STOPS]
        side_by_side(stopped, stops)
        print(f"stopped at {len(stops)} places, and continued after another process: what it still does is not written")
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
