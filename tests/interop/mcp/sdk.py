"""The official Python SDK as a client over HTTP, in both eras of the protocol."""

import asyncio
import sys

from mcp import Client, MCPError


async def check(url: str, mode: str, wrapped: bool) -> None:
    async with Client(url, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert len(tools) == 14, [tool.name for tool in tools]
        text = await client.call_tool("test_simple_text", {})
        value = "This is a simple text response for testing."
        assert text.structured_content == ({"result": value} if wrapped else value), text
        assert text.content[0].text == value
        mixed = await client.call_tool("test_multiple_content_types", {})
        assert [block.type for block in mixed.content] == ["text", "image", "resource"]
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error and "intentionally" in failed.content[0].text
        try:
            await client.call_tool("nothing", {})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError("an unknown tool was called")


async def main(url: str) -> None:
    await check(url, "legacy", wrapped=True)
    await check(url, "2026-07-28", wrapped=False)
    print("the Python SDK 2.3.0: sessions, and 2026-07-28 without")


asyncio.run(main(sys.argv[1]))
