"""openai-agents: a session and the state of a run in files, or the integration with DBOS."""

import asyncio
import json

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, SQLiteSession, Usage, function_tool
from common import CENTS, DATA, PAYMENT, PROMPT, ROW, Script, command, refund, report
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

verb, run, times = command()
script = Script(times)
is_durable = ROW == "openai-agents + DBOS"


class Scripted(Model):
    async def get_response(self, system_instructions, input, *_, **__):  # noqa: A002
        items = [] if isinstance(input, str) else input
        results = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
        call = script.next(results)
        if call is None:
            text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
            output = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        else:
            arguments = json.dumps({"payment_id": PAYMENT, "cents": CENTS})
            output = ResponseFunctionToolCall(call_id=call, name="pay", arguments=arguments, type="function_call")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def paid(payment_id: str, cents: int) -> str:
    """Refunds a payment."""
    return await asyncio.to_thread(refund, payment_id, cents)


quiet = RunConfig(tracing_disabled=True)
asks = verb in ("wait", "decide")

if is_durable:
    import durable
    from dbos import DBOS
    from dbos_openai_agents import DBOSRunner

    durable.launch()
    step = DBOS.step(name="pay")(paid)
    agent = Agent("support", model=Scripted(),
                  tools=[function_tool(step, name_override="pay", needs_approval=asks)])

    @DBOS.workflow()
    async def converse(_: int) -> str:
        result = await DBOSRunner.run(agent, PROMPT, run_config=quiet)
        while result.interruptions:
            report("waits", "interruptions")
            await DBOS.recv_async(durable.TOPIC, timeout_seconds=3600)
            state = result.to_state()
            for waiting in state.get_interruptions():
                state.approve(waiting)
            result = await DBOSRunner.run(agent, state, run_config=quiet)
        return str(result.final_output)

    asyncio.run(durable.perform(converse))
else:
    agent = Agent("support", model=Scripted(),
                  tools=[function_tool(paid, name_override="pay", needs_approval=asks)])
    kept = DATA / f"{run}.state.json"

    async def main():
        if asks:
            if verb == "wait":
                result = await Runner.run(agent, PROMPT, run_config=quiet)
            else:
                state = await RunState.from_json(agent, json.loads(kept.read_text()))
                waiting = state.get_interruptions()
                if not waiting:
                    report("refused", "the stored state has no interruptions")
                    return
                for item in waiting:
                    state.approve(item)
                result = await Runner.run(agent, state, run_config=quiet)
            kept.write_text(json.dumps(result.to_state().to_json()))
            if result.interruptions:
                report("waits", "interruptions")
        else:
            # After a crash the application sends the same message to the same session.
            session = SQLiteSession(run, DATA / "session.db")
            await Runner.run(agent, PROMPT, session=session, run_config=quiet)

    asyncio.run(main())
