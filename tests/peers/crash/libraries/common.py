"""What the programs in Python share: the request for a refund, the script of the model, and the reports."""

import http.client
import json
import os
import pathlib
import sys
import urllib.parse

# The folder of one part of one row. A process that is started again finds its files here.
DATA = pathlib.Path(os.environ["DATA"])
ROW = os.environ["ROW"]
PAYMENT, CENTS = "pay_1", 4200
PROMPT = f"Refund {CENTS} cents of {PAYMENT}."
LOST = (http.client.HTTPException, OSError)
LOST_TEXT = "The connection was lost before an answer came."


def refund(payment_id, cents):
    """Asks the world for a refund, once."""
    address = urllib.parse.urlsplit(os.environ["WORLD"])
    connection = http.client.HTTPConnection(address.hostname, address.port)
    try:
        connection.request("POST", "/refund", json.dumps({"payment_id": payment_id, "cents": cents}),
                           {"content-type": "application/json"})
        response = connection.getresponse()
        body = json.loads(response.read())
    finally:
        connection.close()
    return f"refunded {body['refunded']} cents"


def say(**line):
    """Writes a line for the harness."""
    print(json.dumps(line), flush=True)


def report(kind, text):
    """Reports what the library said about one request: `ok`, `error`, `unknown`, `refused` or `waits`."""
    say(report=kind, text=" ".join(str(text).split()))


def kind_of(text):
    """The kind of a result that the model reads, for libraries that have results and errors only."""
    return "ok" if "refunded" in text else "error"


class Script:
    """The model: it asks for the refund again, with a new call id, until it has read enough results."""

    def __init__(self, times):
        self.times, self.made, self.read = times, 0, 0

    def next(self, results):
        """Takes the texts of all results in the history. Returns the id of the next call, or `None` at the end."""
        for text in results[self.read:]:
            report(kind_of(text), text)
        self.read = max(self.read, len(results))
        if len(results) >= self.times:
            return None
        self.made += 1
        return f"call_{os.getpid()}_{self.made}"

    def seen(self, results):
        """Skips results that an earlier process has reported."""
        self.read = len(results)


def command():
    """Returns the command and the run: `ask RUN TIMES`, `recover RUN`, `wait RUN` or `decide RUN`."""
    _, verb, run, *rest = sys.argv
    return verb, run, int(rest[0]) if rest else 1
