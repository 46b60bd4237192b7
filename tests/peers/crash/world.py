"""The outside world: a server on loopback that makes refunds and counts them by business key."""

import collections
import contextlib
import http.server
import json
import socket
import threading


class World:
    """Makes every refund that is requested, and then answers, loses the answer, or holds it back.

    `plan` names the answer to the first, second, .. request: `answer`, `lose` or `hold`. The last entry stands for all
    later requests.
    """

    def __init__(self, plan):
        self.plan, self.effects, self.changed = plan, [], threading.Condition()
        self.released = threading.Event()
        world = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                answer = world.refund(body)
                if answer == "lose":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if answer == "hold":
                    world.released.wait()
                text = json.dumps({"refunded": body["cents"]}).encode()
                # A process that was killed reads no answer.
                with contextlib.suppress(ConnectionError):
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A thread whose answer is held back does not delay the end.
        self.server.block_on_close = False
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def refund(self, body):
        """Makes a refund. Returns how to answer."""
        with self.changed:
            answer = self.plan[min(len(self.effects), len(self.plan) - 1)]
            self.effects.append(f"refund:{body['payment_id']}")
            self.changed.notify_all()
            return answer

    def until(self, count, seconds):
        """Waits until this many refunds were made. Returns whether they were."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.effects) >= count, seconds)

    def count(self):
        """Returns the number of effects for each business key."""
        with self.changed:
            return dict(collections.Counter(self.effects))

    def release(self):
        """Sends the answers that are held back."""
        self.released.set()

    def stop(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()
