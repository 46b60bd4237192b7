"""Clients of MCP in Python that do not support tasks. Each has `name`, how its user is asked (`asks`), whether it shows progress
(`reports`), and `connected`, a context in which one function calls a tool and returns an `Answer`."""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
from collections.abc import Awaitable, Callable

# A question about a call: the answer to its form, or `None` to decline.
Ask = Callable[[str], Awaitable[dict | None]]


class TimedOut(Exception):
    """The client no longer waits for the answer."""


@dataclasses.dataclass
class Answer:
    is_error: bool
    text: str


@dataclasses.dataclass
class Client:
    url: str
    # The client's own limit for a call, in seconds.
    timeout: float | None = None
    ask: Ask | None = None
    reported: Callable[[], None] | None = None

    package = ""
    detail = ""
    asks = ""
    reports = True
    # Whether it ignores the answer after its own limit of time, without cancelling the request.
    is_silent = False
    # Whether its limit of time stands still while it asks its user.
    pauses = False

    @classmethod
    def name(cls) -> str:
        detail = f" ({cls.detail})" if cls.detail else ""
        return f"{cls.package} {importlib.metadata.version(cls.package)}{detail}"

    async def progress(self, *_) -> None:
        if self.reported:
            self.reported()


async def answered(calling: Awaitable) -> Answer:
    """Returns the answer to a call by a client over `mcp` 2."""
    import mcp
    import mcp_types

    try:
        result = await calling
    except mcp.MCPError as error:
        if error.error.code == mcp_types.REQUEST_TIMEOUT:
            raise TimedOut from error
        raise
    return Answer(result.is_error, result.content[0].text)


class Sdk(Client):
    package, detail, asks, pauses = "mcp", "2026-07-28", "input_required", True
    mode = "auto"

    @contextlib.asynccontextmanager
    async def connected(self):
        import mcp
        import mcp_types

        async def elicited(_, params):
            filled = await self.ask(params.message)
            action = "decline" if filled is None else "accept"
            return mcp_types.ElicitResult(action=action, content=filled)

        asking = {"elicitation_callback": elicited} if self.ask else {}
        async with mcp.Client(self.url, mode=self.mode, **asking) as client:
            assert (client.protocol_version == "2026-07-28") == (self.asks == "input_required"), client.protocol_version

            async def call(tool: str, arguments: dict, timeout: float | None = None) -> Answer:
                progress = {"progress_callback": self.progress} if self.reported else {}
                return await answered(client.call_tool(tool, arguments, read_timeout_seconds=timeout, **progress))

            yield call


class SdkSessions(Sdk):
    detail, asks = "2025-11-25", "elicitation"
    mode = "legacy"


class FastMcp(Client):
    package, detail, asks, pauses = "fastmcp", "2026-07-28", "input_required", True
    mode = "auto"

    @contextlib.asynccontextmanager
    async def connected(self):
        import fastmcp
        from fastmcp.client.elicitation import ElicitResult

        async def elicited(message, *_):
            filled = await self.ask(message)
            return ElicitResult(action="decline") if filled is None else filled

        asking = {"elicitation_handler": elicited} if self.ask else {}
        async with fastmcp.Client(self.url, mode=self.mode, **asking) as client:

            async def call(tool: str, arguments: dict, timeout: float | None = None) -> Answer:
                progress = {"progress_handler": self.progress} if self.reported else {}
                called = client.call_tool(tool, arguments, timeout=timeout, raise_on_error=False, **progress)
                return await answered(called)

            yield call


class FastMcpSessions(FastMcp):
    detail, asks = "2025-11-25", "elicitation"
    mode = "legacy"


class Langchain(Client):
    """Each call has a session of its own."""

    package, detail, asks = "langchain-mcp-adapters", "2025-11-25", "elicitation"

    def client(self):
        from langchain_mcp_adapters.callbacks import Callbacks
        from langchain_mcp_adapters.client import MultiServerMCPClient
        from mcp.types import ElicitResult

        async def elicited(_, params, __):
            filled = await self.ask(params.message)
            return ElicitResult(action="decline" if filled is None else "accept", content=filled)

        callbacks = Callbacks(
            on_progress=self.progress if self.reported else None, on_elicitation=elicited if self.ask else None
        )
        server = {"transport": "streamable_http", "url": self.url}
        if self.timeout:
            server["session_kwargs"] = {"read_timeout_seconds": datetime.timedelta(seconds=self.timeout)}
        return MultiServerMCPClient({"toolbox": server}, callbacks=callbacks, handle_tool_errors=False)

    @contextlib.asynccontextmanager
    async def connected(self):
        yield self.calling(await self.client().get_tools())

    def calling(self, tools):
        from langchain_core.tools import ToolException
        from mcp.shared.exceptions import McpError

        async def call(name: str, arguments: dict, _: float | None = None) -> Answer:
            tool = next(tool for tool in tools if tool.name == name)
            try:
                return Answer(False, str(await tool.ainvoke(arguments)))
            except ToolException as error:
                return Answer(True, str(error))
            except McpError as error:
                if "Timed out" in error.error.message:
                    raise TimedOut from error
                raise

        return call


class LangchainSession(Langchain):
    """All calls share one session, which stays when a call has timed out."""

    detail, is_silent = "2025-11-25, one session", True

    @contextlib.asynccontextmanager
    async def connected(self):
        from langchain_mcp_adapters.tools import load_mcp_tools

        client = self.client()
        async with client.session("toolbox") as session:
            tools = await load_mcp_tools(
                session, callbacks=client.callbacks, server_name="toolbox", handle_tool_errors=False
            )
            yield self.calling(tools)


class Agents(Client):
    """A model that is a script calls the tool, and reads the result in its next turn."""

    package, detail, reports = "openai-agents", "2026-07-28", False

    @contextlib.asynccontextmanager
    async def connected(self):
        from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
        from agents.mcp import MCPServerStreamableHttp
        from agents.models.interface import Model
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        set_tracing_disabled(True)
        calls, read = [], []

        class Script(Model):
            async def get_response(self, *_, **given):
                outputs = [
                    item
                    for item in given["input"]
                    if isinstance(item, dict) and item.get("type") == "function_call_output"
                ]
                if outputs:
                    read.append(outputs[-1]["output"])
                    text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
                    item = ResponseOutputMessage(
                        id="m1", content=[text], role="assistant", status="completed", type="message"
                    )
                else:
                    tool, arguments = calls[-1]
                    item = ResponseFunctionToolCall(
                        call_id="c1", name=tool, arguments=json.dumps(arguments), type="function_call"
                    )
                return ModelResponse(output=[item], usage=Usage(), response_id=None)

            def stream_response(self, *_, **__):
                raise NotImplementedError

        limit = self.timeout or 0
        async with MCPServerStreamableHttp(
            params={"url": self.url},
            client_session_timeout_seconds=limit,
            failure_error_function=lambda _, error: f"The call failed: {error!r}",
        ) as server:

            async def call(tool: str, arguments: dict, _: float | None = None) -> Answer:
                calls.append((tool, arguments))
                answer = await Runner.run(Agent(name="sender", model=Script(), mcp_servers=[server]), "Send the mail.")
                assert answer.final_output == "Done.", answer
                text = json.dumps(read[-1])
                if "timed out" in text.lower():
                    raise TimedOut(text)
                return Answer("errorCode" in text, text)

            yield call


class Pydantic(Client):
    """A model that is a function calls the tool, and reads the result in its next turn."""

    package, detail, asks, reports = "pydantic-ai-slim", "2026-07-28", "input_required", False

    @contextlib.asynccontextmanager
    async def connected(self):
        from pydantic_ai import Agent
        from pydantic_ai.mcp import MCPToolset
        from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
        from pydantic_ai.models.function import FunctionModel

        calls, read = [], []

        async def elicited(message, *_):
            from fastmcp.client.elicitation import ElicitResult

            filled = await self.ask(message)
            return ElicitResult(action="decline") if filled is None else filled

        def script(messages, _):
            for part in messages[-1].parts:
                if isinstance(part, ToolReturnPart | RetryPromptPart):
                    read.append(str(part.content))
                    return ModelResponse(parts=[TextPart("Done.")])
            tool, arguments = calls[-1]
            return ModelResponse(parts=[ToolCallPart(tool, arguments)])

        asking = {"elicitation_handler": elicited} if self.ask else {}
        limit = {"read_timeout": self.timeout} if self.timeout else {}
        toolset = MCPToolset(self.url, **asking, **limit)
        async with Agent(FunctionModel(script), toolsets=[toolset]) as agent:

            async def call(tool: str, arguments: dict, _: float | None = None) -> Answer:
                calls.append((tool, arguments))
                answer = await agent.run("Send the mail.")
                assert answer.output == "Done.", answer
                text = read[-1]
                if "timed out" in text.lower():
                    raise TimedOut(text)
                return Answer("errorCode" in text, text)

            yield call


CLIENTS = {
    "mcp": [Sdk, SdkSessions],
    "fastmcp": [FastMcp, FastMcpSessions],
    "langgraph": [Langchain, LangchainSession],
    "agents": [Agents],
    "pydantic": [Pydantic],
}
