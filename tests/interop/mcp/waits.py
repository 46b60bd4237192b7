"""A call that waits, for clients without tasks: `waits.py mcp|fastmcp|langchain|agents TOOLBOX DATA POLICY`. A person approves at
the command line; the client asks again, and once the request is held meanwhile. Each mail is sent once."""

import asyncio
import json
import pathlib
import subprocess
import sys

kind, toolbox, data, policy = sys.argv[1:]
data = pathlib.Path(data)
asked, held = data.with_suffix(".toml"), data.with_suffix(".hold.toml")
asked.write_text(policy)
held.write_text(f'{policy}\n[mcp]\nhold = "1h"\n')
shared = ["--data", str(data), "--store", f"sqlite:{data}.db"]


def approvals(*words: str) -> subprocess.CompletedProcess:
    command = [toolbox, *shared, "--policy", str(asked), "--json", "approvals", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def approve(of: pathlib.Path) -> None:
    """Approves the call that waits, once one does and its server has entered its run."""
    while True:
        command = [toolbox, *shared, "--policy", str(of), "--json", "approvals"]
        listed = subprocess.run([*command, "list"], capture_output=True, text=True, check=False)
        for waiting in json.loads(listed.stdout or "[]"):
            approved = [*command, "approve", waiting["id"], "--as", "grace"]
            if subprocess.run(approved, capture_output=True, check=False).returncode == 0:
                return


def sent() -> int:
    folder = data / "outbox" / "new"
    return len(list(folder.iterdir())) if folder.is_dir() else 0


async def check(call, of: pathlib.Path, mails: int) -> None:
    if of == held:
        done, _ = await asyncio.gather(call(), asyncio.to_thread(approve, of))
    else:
        is_error, text = await call()
        assert is_error and "approval_required" in text and "Make the same call again" in text, text
        assert "approval_required" in (await call())[1]
        assert len(json.loads(approvals("list").stdout)) == 1, "the same call is one call"
        approve(of)
        assert sent() == mails, "nothing happens before the client asks again"
        done = await call()
    assert not done[0], done
    assert sent() == mails + 1, "once"
    assert json.loads(approvals("list").stdout) == []


async def mcp_client(url: str, of: pathlib.Path, arguments: dict, mails: int) -> None:
    from mcp import Client

    async with Client(url, mode="auto") as client:
        async def call():
            result = await client.call_tool("mail__send_email", arguments)
            return result.is_error, result.content[0].text

        await check(call, of, mails)


async def fastmcp_client(url: str, of: pathlib.Path, arguments: dict, mails: int) -> None:
    from fastmcp import Client

    async with Client(url) as client:
        async def call():
            result = await client.call_tool("mail__send_email", arguments, raise_on_error=False)
            return result.is_error, result.content[0].text

        await check(call, of, mails)


async def langchain_client(url: str, of: pathlib.Path, arguments: dict, mails: int) -> None:
    from langchain_core.tools import ToolException
    from langchain_mcp_adapters.client import MultiServerMCPClient

    server = {"toolbox": {"transport": "streamable_http", "url": url}}
    client = MultiServerMCPClient(server, handle_tool_errors=False)
    tool = next(tool for tool in await client.get_tools() if tool.name == "mail__send_email")

    async def call():
        try:
            return False, str(await tool.ainvoke(arguments))
        except ToolException as error:
            return True, str(error)

    await check(call, of, mails)


async def agents_client(url: str, of: pathlib.Path, arguments: dict, mails: int) -> None:
    """A model that is a script calls the tool, and reads the result in its next turn."""
    from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)
    read = []

    class Script(Model):
        async def get_response(self, *_, **given):
            outputs = [item for item in given["input"] if isinstance(item, dict) and item.get("type") == "function_call_output"]
            if outputs:
                read.append(outputs[-1]["output"])
                text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
                item = ResponseOutputMessage(
                    id="m1", content=[text], role="assistant", status="completed", type="message"
                )
            else:
                item = ResponseFunctionToolCall(
                    call_id="c1", name="mail__send_email", arguments=json.dumps(arguments), type="function_call"
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    async with MCPServerStreamableHttp(params={"url": url}, client_session_timeout_seconds=600) as server:
        async def call():
            agent = Agent(name="sender", model=Script(), mcp_servers=[server])
            answer = await Runner.run(agent, "Send the mail.")
            assert answer.final_output == "Done.", answer
            text = json.dumps(read[-1])
            return "errorCode" in text, text

        await check(call, of, mails)


async def main() -> None:
    clients = {"mcp": mcp_client, "fastmcp": fastmcp_client, "langchain": langchain_client, "agents": agents_client}
    client = clients[kind]
    for mails, of in enumerate([asked, held]):
        command = [toolbox, *shared, "--policy", str(of), "mcp", "serve", "--http", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            url = next(line.split()[-1] for line in server.stdout if "listening on" in line)
            arguments = {"to": ["ada@example.com"], "subject": f"{kind} {mails}", "body": "Hello"}
            await client(url, of, arguments, mails)
        finally:
            server.terminate()
            server.wait()
    print(f"a call that waits: {kind}, asked again and held")


asyncio.run(main())
