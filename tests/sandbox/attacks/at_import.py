# Attackers use bare system calls.
# ruff: noqa: PTH111, PTH123
"""Do the damage while being imported."""

import os
import sys

with open(os.path.expanduser("~/mode")) as stream:
    MODE = stream.read()
if MODE == "exit":
    sys.exit(0)
if MODE == "hard":
    os._exit(0)
if MODE == "stdout":
    sys.stdout.write('{"phase": "ready"}\n' * 3)
    sys.stdout.flush()
    os.write(1, b"\x00\x00\x00\x02{}")
if MODE == "hang":
    while True:
        pass
if MODE == "trap":
    import builtins
    import json

    builtins.open = None
    json.dumps = json.loads = None
    sys.modules["json"] = None
    os.environ.clear()


def compress(messages):
    return [{"role": "user", "content": "short"}]
