"""LangGraph: a model node and a `ToolNode`, with checkpoints in SQLite that are written before the next step begins."""

import sqlite3

from common import CENTS, DATA, PAYMENT, PROMPT, Script, command, refund, report
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

verb, run, times = command()
script = Script(times)


def pay(payment_id: str, cents: int) -> str:
    """Refunds a payment."""
    # The first line of a tool that a person reviews; the node begins again when the decision is there.
    if verb in ("wait", "decide") and not interrupt({"refund": payment_id}):
        return "denied"
    return refund(payment_id, cents)


def model(state):
    call = script.next([message.text for message in state["messages"] if isinstance(message, ToolMessage)])
    if call is None:
        return {"messages": [AIMessage("Done.")]}
    arguments = {"payment_id": PAYMENT, "cents": CENTS}
    return {"messages": [AIMessage("", tool_calls=[{"name": "pay", "args": arguments, "id": call}])]}


builder = StateGraph(MessagesState)
builder.add_node("model", model)
# Errors of a tool become results that the model reads.
builder.add_node("tools", ToolNode([pay], handle_tool_errors=True))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
builder.add_edge("tools", "model")
graph = builder.compile(checkpointer=SqliteSaver(sqlite3.connect(DATA / "checkpoints.db", check_same_thread=False)))

thread = {"configurable": {"thread_id": run}}
state = graph.get_state(thread)
script.seen([message for message in state.values.get("messages", []) if isinstance(message, ToolMessage)])
given = {"recover": None, "decide": Command(resume=True)}.get(verb, {"messages": [HumanMessage(PROMPT)]})
if verb == "decide" and not state.interrupts:
    report("refused", "the thread has no interrupts")
end = graph.invoke(given, thread, durability="sync")
if end.get("__interrupt__"):
    report("waits", "interrupt")
