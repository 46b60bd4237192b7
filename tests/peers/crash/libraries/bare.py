"""The control: a loop without a library. It keeps nothing, so it starts again from the beginning."""

from common import CENTS, LOST, PAYMENT, Script, command, kind_of, refund, report

verb, run, times = command()
if verb == "wait":
    report("waits", "waits for a person")
elif verb == "decide":
    text = refund(PAYMENT, CENTS)
    report(kind_of(text), text)
else:
    script, results = Script(times), []
    while script.next(results):
        try:
            results.append(refund(PAYMENT, CENTS))
        except LOST as error:
            results.append(f"error: {error}")
