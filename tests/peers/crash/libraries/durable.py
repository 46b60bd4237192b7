"""DBOS, for the libraries that have an integration with it: a database in a file, recovery at the start."""

import asyncio
import sys

from common import DATA, command, report, say
from dbos import DBOS, DBOSClient, SetWorkflowID

DATABASE = f"sqlite:///{DATA}/dbos.sqlite"
TOPIC = "decision"


def launch():
    # The recovery of DBOS takes the workflows of the same version of the application.
    DBOS(config={"name": "crash", "system_database_url": DATABASE, "application_version": "1", "log_level": "ERROR"})


async def perform(workflow):
    """Carries out the command of this process with `workflow(prompt, times)`."""
    verb, run, times = command()
    if verb == "decide":
        # Another process sends the decision to the workflow, which waits for it.
        DBOSClient(system_database_url=DATABASE).send(run, True, TOPIC)
        report("ok", "sent to the workflow")
        return
    # Recovery of all workflows that have not ended starts here.
    DBOS.launch()
    if verb == "recover":
        handle = await DBOS.retrieve_workflow_async(run)
    else:
        with SetWorkflowID(run):
            handle = await DBOS.start_workflow_async(workflow, times)
    try:
        await handle.get_result()
    except Exception as error:  # The application sees how the workflow ends.
        report("error", f"the workflow: {type(error).__name__}: {error}")
    if verb == "wait":
        # Another decision may come; the process ends with its input.
        say(ended=True)
        await asyncio.to_thread(sys.stdin.read)
    DBOS.destroy()
