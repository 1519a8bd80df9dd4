"""A command that misbehaves in the way its first argument names."""

import json
import os
import sys
import time

WAY = sys.argv[1]


def answer(value):
    print(json.dumps(value), flush=True)


def kept(asked):
    return [{"role": "user", "content": "short"}, *asked["messages"][-1:]]


if WAY == "dies-at-once":
    sys.exit(3)
start = json.loads(sys.stdin.readline())
if WAY == "not-ready":
    answer({"type": "error", "message": "no licence file"})
    sys.exit(0)
if WAY == "chatty":
    print("loading the model ...", flush=True)
if WAY == "silent":
    time.sleep(3600)
answer({"type": "ready"})
for number, line in enumerate(sys.stdin, 1):
    asked = json.loads(line)
    result = {"type": "result", "id": asked["id"]}
    if WAY == "wrong-id":
        answer({**result, "id": 99, "messages": kept(asked)})
    elif WAY == "both":
        answer({**result, "messages": kept(asked), "state": {"protocol": "openai-responses", "items": [{}]}})
    elif WAY == "neither":
        answer(result)
    elif WAY == "error":
        answer({"type": "error", "id": asked["id"], "message": "the disk is full"})
    elif WAY == "dies":
        sys.exit(7)
    elif WAY == "killed":
        os.kill(os.getpid(), 9)
    elif WAY == "nan":
        print('{"type": "result", "id": 1, "messages": NaN}', flush=True)
    elif WAY == "bad-role":
        answer({**result, "messages": [{"role": "oracle", "content": "x"}]})
    elif WAY == "long":
        answer({**result, "messages": [{"role": "user", "content": "x" * 20_000_000}]})
    elif WAY == "degraded":
        answer({**result, "messages": kept(asked), "status": {"degraded": True, "error": "no model"}})
    elif WAY == "counts":
        answer({**result, "messages": kept(asked), "usage": {"calls": 3}})
    elif WAY == "opaque":
        state = {"protocol": "openai-responses", "items": [{"type": "compaction", "encrypted_content": f"s{number}"}]}
        given = (asked["state"] or {}).get("items", [{}])[0].get("encrypted_content")
        print(f"step {number}: state {given}, {len(asked['messages'])} messages", file=sys.stderr, flush=True)
        answer({**result, "state": state})
    elif WAY == "environment":
        seen = {"start": start, "adapter": os.environ.get("WHERE", ""), "argv": sys.argv[2:]}
        answer({**result, "messages": [{"role": "user", "content": json.dumps(seen)}]})
    else:
        answer({**result, "messages": kept(asked)})
