"""Runs the toolbox."""

import json
import os
import subprocess

BINARY = os.path.realpath(os.environ["TOOLBOX"])


def run(*arguments: str, stdin: bytes = b"", codes: tuple = (0,)) -> bytes:
    done = subprocess.run([BINARY, *arguments], input=stdin, capture_output=True, timeout=600, check=False)
    if done.returncode not in codes:
        raise RuntimeError(f"toolbox {arguments} exits with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def spelled(name: str) -> str:
    return name.replace("_", "-")


def decode(name: str, body: bytes) -> dict:
    return json.loads(run("wire", "decode", spelled(name), stdin=body))


def encode(name: str, kind: str, case: bytes) -> dict:
    return json.loads(run("wire", "encode", spelled(name), "--kind", kind, stdin=case, codes=(0, 1)))


def export(name: str, *options: str) -> dict:
    return json.loads(run("export", "--as", spelled(name), *options))
