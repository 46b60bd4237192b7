"""A call that waits, for clients without tasks: `waits.py VENV TOOLBOX SERVED DATA POLICY`.

A person approves or denies it in another process, after the client was told that the call waits, while its request is held, and
after the client's own timeout. A client that can ask its user decides by itself. Each mail is sent once or not at all."""

import asyncio
import json
import logging
import pathlib
import subprocess
import sys

from clients import CLIENTS, Answer, Client, TimedOut

venv, toolbox, served, data, policy = sys.argv[1:]
data = pathlib.Path(data)
asked, held = data.with_suffix(".toml"), data.with_suffix(".hold.toml")
asked.write_text(policy)
held.write_text(f'{policy}\n[mcp]\nhold = "1h"\n')
shared = ["--data", str(data), "--store", f"sqlite:{data}.db"]
TOOL = "mail__send_email"
logging.disable(logging.ERROR)
# The limit of a client that leaves without a word, in seconds. The server notices it by the time of its answer, after five
# seconds; the rest is room for a busy machine.
SILENT = 15
mails = 0


def toolbox_with(of: pathlib.Path, *words: str) -> subprocess.CompletedProcess:
    command = [toolbox, *shared, "--policy", str(of), "--json", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def waiting() -> list[dict]:
    """The calls that wait. A store that does not exist yet has none."""
    return json.loads(toolbox_with(asked, "approvals", "list").stdout or "[]")


def decide(of: pathlib.Path, word: str) -> None:
    """Decides on the call that waits, once one does and its server has entered its run."""
    while True:
        for call in waiting():
            if toolbox_with(of, "approvals", word, call["id"], "--as", "grace").returncode == 0:
                return


def sent() -> int:
    folder = data / "outbox" / "new"
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def settle(word: str, answer: Answer) -> None:
    """The client has the call's result or the refusal, and the effect happened once or not at all."""
    global mails
    if word == "approve":
        mails += 1
        assert not answer.is_error and "errorCode" not in answer.text, answer
    else:
        assert answer.is_error and "approval_denied" in answer.text, answer
    assert sent() == mails, (sent(), mails)
    assert waiting() == []


class Served:
    """A server on loopback, ended by its id."""

    def __init__(self, *command: str) -> None:
        self.command = command

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "listening on" in line:
                return line.split()[-1]
            if line.startswith("127.0.0.1:"):
                return f"http://{line.strip()}/mcp"
        raise AssertionError("the server did not start")

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()


def serving(of: pathlib.Path) -> Served:
    return Served(toolbox, *shared, "--policy", str(of), "mcp", "serve", "--http", "127.0.0.1:0")


async def calls_again(kind: type[Client]) -> None:
    """The client learns that the call waits, and makes the same call again."""
    with serving(asked) as url:
        async with kind(url).connected() as call:
            for word in ["approve", "deny"]:
                arguments = mail(kind, f"again {word}")
                for _ in range(2):
                    answer = await call(TOOL, arguments)
                    assert answer.is_error and "approval_required" in answer.text, answer
                    assert "Make the same call again" in answer.text, answer
                assert len(waiting()) == 1, "the same call is one call"
                await asyncio.to_thread(decide, asked, word)
                assert sent() == mails, "nothing happens before the client calls again"
                settle(word, await call(TOOL, arguments))


async def is_held(kind: type[Client]) -> None:
    """The request is held until a person decides. A client that wants progress gets some before."""
    for word in ["approve", "deny"]:
        with serving(held) as url:
            reported = asyncio.Event()
            progress = reported.set if kind.reports else None
            async with kind(url, reported=progress).connected() as call:

                async def decided() -> None:
                    if kind.reports:
                        await reported.wait()
                    await asyncio.to_thread(decide, held, word)

                answer, _ = await asyncio.gather(call(TOOL, mail(kind, f"held {word}")), decided())
                settle(word, answer)


async def times_out(kind: type[Client]) -> None:
    """The decision comes when the client no longer waits for it. The same call again gets the result."""
    for word in ["approve", "deny"]:
        with serving(held) as url:
            arguments, limit = mail(kind, f"late {word}"), 2
            # The first report of progress comes after the time at which the server takes a client for a silent one.
            reported = asyncio.Event()
            if kind.is_silent:
                limit = SILENT
            else:
                reported.set()
            async with kind(url, timeout=limit, reported=reported.set if kind.is_silent else None).connected() as call:
                while not ((first := waiting()) and reported.is_set()):
                    try:
                        raise AssertionError(await call(TOOL, arguments, limit))
                    except TimedOut:
                        pass
                await asyncio.to_thread(decide, held, word)
                while kind.is_silent and waiting():
                    # The server carries the decision out for the request that it still holds.
                    await asyncio.sleep(0.1)
                answer = None
                while answer is None:
                    # On a busy machine, a second attempt can be too late, too.
                    try:
                        answer = await call(TOOL, arguments, limit)
                    except TimedOut:
                        assert {one["id"] for one in waiting()} <= {one["id"] for one in first}, "a second call waits"
                settle(word, answer)


async def asks(kind: type[Client]) -> None:
    """The client's user decides in the client. The calls are alike, so each has a store of its own."""
    tool, effects, sends = "killed__send", data.with_suffix(".effects"), 0

    def asking(name: str) -> Served:
        return Served(served, f"{data}.{kind.detail}.{name}.db", str(effects), "http", "asks")

    for name, filled in [("approve", {"approve": True}), ("deny", {"approve": False}), ("decline", None)]:
        questions = []

        async def ask(message: str) -> dict | None:
            questions.append(message)
            return filled

        with asking(name) as url:
            async with kind(url, ask=ask).connected() as call:
                answer = await call(tool, {})
        sends += name == "approve"
        assert answer.is_error == (name != "approve"), answer
        assert answer.is_error == ("approval_denied" in answer.text), answer
        assert effects.read_text().splitlines() == ["send"] * sends
        assert len(questions) == 1 and tool in questions[0], questions
    if kind.asks == "elicitation" and not kind.pauses:
        # The user answers when the client no longer waits for the result of the call.
        questions, late, limit = [], asyncio.Event(), SILENT if kind.is_silent else 2

        async def ask(message: str) -> dict:
            questions.append(message)
            await late.wait()
            return {"approve": True}

        with asking("late") as url:
            async with kind(url, timeout=limit, ask=ask).connected() as call:
                answer = None
                while answer is None:
                    try:
                        answer = await call(tool, {}, limit)
                    except TimedOut:
                        if questions:
                            late.set()
        assert not answer.is_error, answer
        assert effects.read_text().splitlines() == ["send"] * (sends + 1)
    effects.unlink()


def mail(kind: type[Client], subject: str) -> dict:
    return {"to": ["ada@example.com"], "subject": f"{kind.name()} {subject}", "body": "Hello"}


async def main() -> None:
    for kind in CLIENTS[venv]:
        await calls_again(kind)
        await is_held(kind)
        await times_out(kind)
        ways = ["called again", "held with progress" if kind.reports else "held", "called again after its timeout"]
        if kind.asks:
            await asks(kind)
            ways.append(f"asked by {kind.asks}")
        print(f"a call that waits: {kind.name()}: {', '.join(ways)}; approved and denied")


asyncio.run(main())
