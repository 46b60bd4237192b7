"""The control: a loop without a library. It keeps its request in a file, and starts again from there."""

from common import CENTS, DATA, LOST, PAYMENT, Script, command, kind_of, refund, report

verb, run, times = command()
question = DATA / f"{run}.waits"
if verb == "wait":
    question.touch()
    report("waits", "waits for a person")
elif verb == "decide":
    # The decision is carried out, and the question is then removed.
    if question.exists():
        text = refund(PAYMENT, CENTS)
        question.unlink(missing_ok=True)
        report(kind_of(text), text)
    else:
        report("refused", "nothing waits")
else:
    script, results = Script(times), []
    while script.next(results):
        try:
            results.append(refund(PAYMENT, CENTS))
        except LOST as error:
            results.append(f"error: {error}")
