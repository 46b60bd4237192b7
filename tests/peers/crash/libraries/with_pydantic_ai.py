"""pydantic-ai with DBOS: the run is a workflow, the tool a step or a workflow with an id of the business."""

import asyncio

import durable
from common import CENTS, LOST, LOST_TEXT, PAYMENT, PROMPT, ROW, Script, command, refund, report
from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolFailed
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

durable.launch()
verb, run, times = command()
script = Script(times)


def model(messages, info):
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    results = [str(part.content) for part in parts if part.part_kind in ("tool-return", "retry-prompt")]
    call = script.next(results)
    if call is None:
        return ModelResponse(parts=[TextPart("Done.")])
    return ModelResponse(parts=[ToolCallPart("pay", {"payment_id": PAYMENT, "cents": CENTS}, call)])


agent = Agent(FunctionModel(model), name="support", output_type=[str, DeferredToolRequests],
              capabilities=[DBOSDurability()])


@DBOS.step()
async def requested(payment_id: str, cents: int) -> str:
    return await asyncio.to_thread(refund, payment_id, cents)


@DBOS.workflow()
async def once(payment_id: str, cents: int) -> str:
    return await requested(payment_id, cents)


@agent.tool_plain(requires_approval=verb in ("wait", "decide"))
async def pay(payment_id: str, cents: int) -> str:
    """Refunds a payment."""
    try:
        if ROW == "pydantic-ai + DBOS":
            return await requested(payment_id, cents)
        # A workflow with an id that has run already returns the result of the first one.
        with SetWorkflowID(f"refund:{payment_id}"):
            handle = await DBOS.start_workflow_async(once, payment_id, cents)
        return await handle.get_result()
    except LOST as error:
        raise ToolFailed(f"{LOST_TEXT} {type(error).__name__}: {error}") from error


@DBOS.workflow()
async def converse(_: int) -> str:
    result = await agent.run(PROMPT)
    while isinstance(result.output, DeferredToolRequests):
        report("waits", "DeferredToolRequests")
        approved = await DBOS.recv_async(durable.TOPIC, timeout_seconds=3600)
        decided = DeferredToolResults()
        for call in result.output.approvals:
            decided.approvals[call.tool_call_id] = approved
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)
    return result.output


asyncio.run(durable.perform(converse))
