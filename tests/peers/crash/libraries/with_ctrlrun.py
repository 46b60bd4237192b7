"""ctrlrun: a protected function, called by a loop. Its policy file names the effect or does not."""

import contextlib
import os
import pathlib
import subprocess
import sys

from common import CENTS, DATA, LOST, PAYMENT, ROW, Script, command, refund, report

verb, run, times = command()
decision = "approve" if verb in ("wait", "decide") else "allow"
effect = '\n    effect: "refund:{payment_id}"' if ROW == "ctrlrun, effect key" else ""
policy = DATA / "ctrlrun.yaml"
policy.write_text(f"schema: ctrlrun.policy/v2\nactions:\n  stripe.refund:{effect}\n    decision: {decision}\n")
os.environ["CTRLRUN_CONFIG"] = str(policy)

import ctrlrun  # noqa: E402


@ctrlrun.protect("stripe.refund")
def pay(payment_id, cents):
    return refund(payment_id, cents)


def attempt(approval=None):
    """Calls the protected function once. Reports the end, and returns the text for the model."""
    with ctrlrun.context(agent="support"), ctrlrun.with_approval(approval) if approval else contextlib.nullcontext():
        try:
            text = pay(payment_id=PAYMENT, cents=CENTS)
            kind = "ok"
        except ctrlrun.ApprovalRequired as error:
            (DATA / f"{run}.request").write_text(error.request_id)
            kind, text = "waits", str(error)
        except ctrlrun.CTRLRunError as error:
            kind, text = "refused", f"{type(error).__name__}: {error}"
        except LOST as error:
            kind, text = "error", f"{type(error).__name__}: {error}"
    report(kind, text)
    return text


if verb == "wait":
    attempt()
elif verb == "decide":
    request = (DATA / f"{run}.request").read_text()
    # A person answers with the command line, and the agent then presents the approval.
    program = pathlib.Path(sys.executable).with_name("ctrlrun")
    answered = subprocess.run([program, "approve", request], capture_output=True, text=True, timeout=600, check=False)
    if answered.returncode != 0:
        report("refused", answered.stderr)
    attempt(request)
else:
    script, results = Script(times), []
    script.read = times
    while script.next(results):
        results.append(attempt())
