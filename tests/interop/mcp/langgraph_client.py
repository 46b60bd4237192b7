"""A LangGraph agent's tool node, through `langchain-mcp-adapters`: its calls pass the same gate."""

import asyncio
import sys

from langchain_core.messages import AIMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode


async def main(url: str) -> None:
    client = MultiServerMCPClient({"fixtures": {"transport": "streamable_http", "url": url}})
    tools = await client.get_tools()
    assert len(tools) == 14, [tool.name for tool in tools]
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    calls = [
        {"name": "test_simple_text", "args": {}, "id": "1", "type": "tool_call"},
        {"name": "test_error_handling", "args": {}, "id": "2", "type": "tool_call"},
    ]
    state = await graph.compile().ainvoke({"messages": [AIMessage(content="", tool_calls=calls)]})
    text, failed = state["messages"][1:]
    assert "This is a simple text response for testing." in str(text.content), text
    assert "intentionally returns an error" in str(failed.content) and failed.status == "error", failed
    print("LangGraph with langchain-mcp-adapters 0.3.2: a tool node's calls")


asyncio.run(main(sys.argv[1]))
