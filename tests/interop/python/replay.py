"""A server on loopback that replays responses byte for byte, one a connection, and keeps the bodies it was sent.

As a program: python replay.py [--bodies FILE] [--piece N] [--pause SECONDS] [--cut N] [--seconds N] RESPONSE.http ..
prints its port, and stops after --seconds, or on SIGTERM.
"""

import argparse
import signal
import socket
import sys
import threading
import time


class Replay:
    def __init__(self, replies, piece=65536, pause=0.0, cut=None):
        self.replies, self.piece, self.pause, self.cut = replies, piece, pause, cut
        self.bodies = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        for reply in self.replies:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(600)
                try:
                    self.answer(connection, reply)
                except OSError:
                    pass

    def answer(self, connection, reply):
        asked = b""
        while b"\r\n\r\n" not in asked:
            received = connection.recv(65536)
            if not received:
                return
            asked += received
        head, body = asked.split(b"\r\n\r\n", 1)
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while lengths and len(body) < int(lengths[0]):
            body += connection.recv(65536)
        self.bodies.append(body)
        reply = reply[: self.cut]
        for at in range(0, len(reply), self.piece):
            connection.sendall(reply[at : at + self.piece])
            if self.pause:
                time.sleep(self.pause)
        connection.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def response(content_type: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bodies")
    arguments.add_argument("--piece", type=int, default=65536)
    arguments.add_argument("--pause", type=float, default=0.0)
    arguments.add_argument("--cut", type=int)
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("responses", nargs="+")
    given = arguments.parse_args()
    replies = []
    for name in given.responses:
        with open(name, "rb") as file:
            replies.append(file.read())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Replay(replies, given.piece, given.pause, given.cut) as server:
        print(server.port, flush=True)
        try:
            time.sleep(given.seconds)
        finally:
            if given.bodies:
                with open(given.bodies, "wb") as file:
                    file.writelines(body + b"\n" for body in server.bodies)


if __name__ == "__main__":
    main()
