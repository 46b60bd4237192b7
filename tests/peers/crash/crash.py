"""Runs the scenario with each library, and prints the tables."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading

from world import World

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
HOME = ROOT / "target" / "peers" / "crash"
RESULT = HERE / "result.json"
GUIDE = ROOT / "docs" / "src" / "crashes.md"

# Only against a program that never ends; no result depends on it.
PATIENCE = 600
# How long a second decision may wait for the first one before the first one is answered. A library that waits needs it;
# the result is the same with any length.
WAITS = 300


class Missing(Exception):
    """A library that does not install here. Its text says what was tried."""


def run(*arguments, **more):
    """Runs an installer. Its output is shown if it fails."""
    done = subprocess.run([str(one) for one in arguments], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Missing(f"`{' '.join(str(one) for one in arguments[:3])}`: {' '.join(tail)}")
    return done.stdout


def is_installed(folder, wanted):
    """Whether the folder was installed from these bytes."""
    mark = folder / ".installed"
    digest = hashlib.sha256(wanted).hexdigest()
    return mark.exists() and mark.read_text() == digest, lambda: mark.write_text(digest)


def python(name, *packages):
    """Installs a requirements file into a separate environment. Returns its interpreter and the versions."""
    requirements = (HERE / f"{name}.txt").read_text()
    folder = HOME / name
    done, keep = is_installed(folder, requirements.encode())
    if not done:
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement",
            HERE / f"{name}.txt")
        keep()
    pinned = dict(line.split("==") for line in requirements.split())
    return folder / "bin" / "python", {package: pinned[package] for package in packages}


def node():
    """Installs the lock file. Returns the folder, in which programs find the packages, and the versions."""
    folder = HOME / "ai-sdk"
    folder.mkdir(parents=True, exist_ok=True)
    done, keep = is_installed(folder, (HERE / "package-lock.json").read_bytes())
    if not done:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder)
        keep()
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    return folder, {"ai": packages["ai"], "node": run("node", "--version").strip().lstrip("v")}


def rust(features):
    """Builds the program of this library. Returns it and the versions."""
    environment = {"CARGO_TARGET_DIR": str(HOME / "rust"), "CARGO_PROFILE_DEV_DEBUG": "0", **os.environ}
    arguments = ["cargo", "build", "--quiet", "--locked", "--manifest-path", str(HERE / "Cargo.toml")]
    subprocess.run([*arguments, *(["--features", features] if features else [])], env=environment, check=True)
    built = pathlib.Path(environment["CARGO_TARGET_DIR"]) / "debug" / "crash"
    # Both rows are built from one package.
    kept = HOME / f"crash{'-' + features if features else ''}"
    shutil.copy(built, kept)
    try:
        commit = run("git", "-C", ROOT, "rev-parse", "--short=8", "HEAD").strip()
    except (Missing, OSError):
        # A copy without its history.
        commit = "unknown"
    return kept, {"tool-runtime": f"0.1.0 ({commit})"}


class Row:
    """A library in one way of use: a row of the tables, and a program.

    The commands of the program are `ask RUN TIMES`, `recover RUN`, `wait RUN` and `decide RUN`.
    """

    def __init__(self, library, name, note, install):
        self.library, self.name, self.note, self.install = library, name, note, install
        self.arguments, self.versions = None, {}

    def prepare(self):
        self.arguments, self.versions = self.install()


def program(name, requirements, *packages):
    def install():
        interpreter, versions = python(requirements, *packages)
        return [interpreter, "-W", "ignore", HERE / "libraries" / name], versions

    return install


def bare():
    return [sys.executable, HERE / "libraries" / "bare.py"], {"python": platform.python_version()}


def ai_sdk():
    folder, versions = node()
    # Modules are found from the folder of the program.
    shutil.copy(HERE / "libraries" / "with_ai_sdk.mjs", folder)
    return ["node", folder / "with_ai_sdk.mjs"], versions


def ours(features):
    def install():
        built, versions = rust(features)
        return [built], versions

    return install


PYDANTIC = ("with_pydantic_ai.py", "pydantic-ai", "pydantic-ai-slim", "dbos")
ROWS = [
    Row("bare", "no library", "a plain loop of model and tool", bare),
    Row("ctrlrun", "ctrlrun", "`@protect` and a policy without an effect key",
        program("with_ctrlrun.py", "ctrlrun", "ctrlrun")),
    Row("ctrlrun", "ctrlrun, effect key", "the policy names `effect: \"refund:{payment_id}\"`",
        program("with_ctrlrun.py", "ctrlrun", "ctrlrun")),
    Row("pydantic-ai", "pydantic-ai + DBOS", "`DBOSDurability`; the request is a step of the workflow",
        program(*PYDANTIC)),
    Row("pydantic-ai", "pydantic-ai + DBOS, workflow id",
        "`DBOSDurability`; the request is a separate workflow with the id `refund:{payment_id}`", program(*PYDANTIC)),
    Row("openai-agents", "openai-agents", "`SQLiteSession`; the state of a waiting run in a file",
        program("with_openai_agents.py", "openai-agents", "openai-agents")),
    Row("openai-agents", "openai-agents + DBOS", "`DBOSRunner`; the request is a step of the workflow",
        program("with_openai_agents.py", "openai-agents", "openai-agents", "dbos-openai-agents", "dbos")),
    Row("langgraph", "LangGraph", "a graph with `SqliteSaver`, `durability=\"sync\"` and `interrupt`",
        program("with_langgraph.py", "langgraph", "langgraph", "langgraph-checkpoint-sqlite")),
    Row("ai-sdk", "AI SDK", "`ToolLoopAgent`; the application keeps the messages", ai_sdk),
    Row("ours", "tool-runtime", "`Worker` on `SqlStore` (SQLite)", ours("")),
    Row("ours", "tool-runtime, effect key", "the tool names `once = \"refund:{payment_id}\"`", ours("effect-keys")),
]


class Process:
    """A program of a row in a part of the scenario."""

    # All that were started, so that none is left when a part fails.
    started = []

    def __init__(self, row, world, data, *command):
        environment = {**os.environ, "WORLD": world.url, "DATA": str(data), "ROW": row.name,
                       "PYTHONUNBUFFERED": "1"}
        self.log = open(data / "log", "a")
        self.reports, self.lines = [], queue.Queue()
        arguments = [str(one) for one in (*row.arguments, *command)]
        self.process = subprocess.Popen(arguments, env=environment, cwd=data, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.started.append(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            try:
                said = json.loads(line)
            except json.JSONDecodeError:
                print(line, end="", file=self.log, flush=True)
                continue
            if "report" in said:
                # Ids of one run would make each result another one.
                self.add(said["report"], re.sub(r"\b(act|apr|call)_[0-9a-f_]+", r"\1_..", said["text"]))
            self.lines.put(said)
        self.lines.put(None)

    def add(self, kind, text):
        """Adds a report; equal neighbours are counted."""
        if self.reports and (self.reports[-1]["kind"], self.reports[-1]["text"]) == (kind, text):
            self.reports[-1]["count"] += 1
        else:
            self.reports.append({"count": 1, "kind": kind, "text": text})

    def until(self, is_it):
        """Waits for a line, or for the end of the program."""
        while (said := self.lines.get(timeout=PATIENCE)) is not None and not is_it(said):
            pass

    def ended(self, seconds=PATIENCE):
        """Waits for the end of the program. Returns whether it came; after `PATIENCE` the program is killed."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            if seconds == PATIENCE:
                self.kill()
                self.add("error", f"it did not end in {PATIENCE} s")
            return False
        self.reader.join()
        if self.process.returncode not in (0, -9) and not self.reports:
            self.add("error", f"the program ended with {self.process.returncode}")
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Tells a program that serves decisions to end, and waits for it."""
        self.process.stdin.close()
        self.ended()
        self.log.close()


def asked(row, world, data):
    """Asks five times in one run, and once in each of two others. No request gets an answer."""
    reports = []
    for name, times in (("r1", 5), ("r2", 1), ("r3", 1)):
        process = Process(row, world, data, "ask", name, times)
        process.close()
        reports += process.reports
    return reports


def killed(row, world, data):
    """Kills the process while it waits for the answer, and starts it again."""
    process = Process(row, world, data, "ask", "r1", 1)
    if not world.until(1, PATIENCE):
        raise AssertionError("no refund was requested")
    process.kill()
    process.close()
    world.release()
    again = Process(row, world, data, "recover", "r1", 1)
    again.close()
    return again.reports


def decided_after(row, world, data):
    """Sends a decision, and sends it again after the first one has been carried out."""
    return decided(row, world, data, False)


def decided_while(row, world, data):
    """Sends a decision, and sends it again while the refund of the first one has no answer yet."""
    return decided(row, world, data, True)


def decided(row, world, data, overlapping):
    waiting = Process(row, world, data, "wait", "r1", 1)
    waiting.until(lambda said: said.get("report") == "waits")
    first = Process(row, world, data, "decide", "r1")
    if not world.until(1, PATIENCE):
        raise AssertionError("the decision had no effect")
    if not overlapping:
        first.ended()
        # A program that serves decisions says that the run has ended; any other has ended itself.
        waiting.until(lambda said: said.get("ended"))
    second = Process(row, world, data, "decide", "r1")
    if overlapping:
        # A second decision either ends, or has its effect, or waits for the first one.
        for _ in range(WAITS * 10):
            if second.ended(0.1) or len(world.effects) > 1:
                break
        world.release()
    second.ended()
    first.close()
    second.close()
    waiting.close()
    named = {"waiting": waiting, "first": first, "second": second}
    return [{"process": name, **one} for name, process in named.items() for one in process.reports]


PARTS = {
    "lost": (asked, ["lose"]),
    "killed": (killed, ["hold", "answer"]),
    "again": (decided_after, ["answer"]),
    "at_once": (decided_while, ["hold", "answer"]),
}


def perform(row, home):
    result = {"library": row.library, "name": row.name, "note": row.note, "versions": row.versions}
    for part, (scenario, plan) in PARTS.items():
        data = home / re.sub(r"[^a-z-]+", "-", row.name.lower()) / part
        data.mkdir(parents=True)
        world = World(plan)
        try:
            reports = scenario(row, world, data)
        finally:
            world.stop()
            while Process.started:
                Process.started.pop().kill()
        effects = world.count()
        assert set(effects) <= {"refund:pay_1"}, effects
        result[part] = {"effects": effects.get("refund:pay_1", 0), "reports": reports}
        print(f"{row.name}: {part}: {result[part]['effects']}", file=sys.stderr)
    return result


def kinds(reports):
    """Writes the kinds of reports with their numbers, in order: `2 error, 3 refused`."""
    runs = []
    for report in reports:
        if runs and runs[-1][0] == report["kind"]:
            runs[-1][1] += report["count"]
        else:
            runs.append([report["kind"], report["count"]])
    return ", ".join(f"{count} {kind}" for kind, count in runs) or "nothing"


def cells(row):
    """The cells of a row of the guide's table."""
    if "missing" in row:
        return [row["name"], f"not installed: {row['missing']}", "", "", "", "", ""]
    found = [row["name"]]
    for part in ("lost", "killed"):
        found += [str(row[part]["effects"]), kinds(row[part]["reports"])]
    for part in ("again", "at_once"):
        second = kinds(report for report in row[part]["reports"] if report["process"] == "second")
        found.append(f"{row[part]['effects']} ({second})")
    return found


HEAD = [
    "| | answer lost: refunds | reports | killed: refunds | reports after the restart "
    "| decided twice, one after the other: refunds (reports) | decided twice at once: refunds (reports) |",
    "| --- | ---: | --- | ---: | --- | --- | --- |",
]


def table(rows):
    return "\n".join(HEAD + [f"| {' | '.join(cells(row))} |" for row in rows])


def versions(rows):
    lines = ["| | used as | versions |", "| --- | --- | --- |"]
    for row in rows:
        used = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        lines.append(f"| {row['name']} | {row['note']} | {used} |")
    return "\n".join(lines)


def write(result):
    """Keeps the result, and replaces the parts of the guide between its marks."""
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    page = GUIDE.read_text()
    dated = f"The tables were generated on {result['date']}."
    parts = {"table": table(result["rows"]), "versions": versions(result["rows"]), "date": dated}
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise AssertionError(f"{GUIDE.name} has no mark for {name}")
        page = before + begin + text + "\n" + end + after
    GUIDE.write_text(page)


def check(result):
    """Compares the effects and the kinds of reports with the stored result. Ends with an error if they differ."""
    stored = {row["name"]: cells(row) for row in json.loads(RESULT.read_text())["rows"]}
    differences = []
    for row in result["rows"]:
        if "missing" in row:
            # A registry may be away. The row is printed.
            continue
        now, before = cells(row), stored.get(row["name"])
        if now != before:
            differences.append(f"{row['name']}:\n  stored: {before}\n  now:    {now}")
    if differences:
        sys.exit("the result differs from result.json:\n" + "\n".join(differences))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", metavar="LIB", help="the rows of one library")
    parser.add_argument("--write", action="store_true", help="keeps the result and the tables of the guide")
    parser.add_argument("--check", action="store_true", help="compares effects and kinds of reports with the result")
    options = parser.parse_args()
    chosen = [row for row in ROWS if options.only in (None, row.library)]
    if not chosen:
        parser.error(f"--only is one of {', '.join(dict.fromkeys(row.library for row in ROWS))}")
    # The programs that run end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    home = HOME / "runs"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    results = {}
    for row in chosen:
        try:
            row.prepare()
        except Missing as missing:
            print(f"{row.name}: {missing}", file=sys.stderr)
            results[row.name] = {"library": row.library, "name": row.name, "note": row.note,
                                    "versions": {}, "missing": str(missing)}
            continue
        results[row.name] = perform(row, home)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    result = {"date": date, "rows": list(results.values())}
    print(table(result["rows"]))
    print()
    print(versions(result["rows"]))
    print()
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if options.write:
        if options.only and RESULT.exists():
            # The other rows keep their last result.
            earlier = json.loads(RESULT.read_text())["rows"]
            results = {row["name"]: row for row in earlier} | results
            order = [row.name for row in ROWS]
            result["rows"] = sorted(results.values(), key=lambda row: order.index(row["name"]))
        write(result)
    print(f"the files and logs of the programs are in {home.relative_to(ROOT)}", file=sys.stderr)
    if options.check:
        check(result)


if __name__ == "__main__":
    main()
