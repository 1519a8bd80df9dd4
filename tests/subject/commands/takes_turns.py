"""A command whose agent goes on after a compaction; it is started with what its adapter gets wrong, if anything."""

import json
import sys
import urllib.request

SUMMARY = {"role": "user", "content": "Please sum up what was done so far."}
adapter, start, sent = sys.argv[1], {}, []


def ask(messages):
    body = json.dumps({"model": start["model"], "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {start['api_key']}"}
    request = urllib.request.Request(f"{start['base_url']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "start":
        start = asked
        answer = {"type": "ready", "takes_turns": adapter != "takes none"}
    elif asked["type"] == "compress":
        messages = asked["messages"]
        instruction = [] if adapter == "gives no instruction" else [SUMMARY]
        summary = {"role": "user", "content": ask([*messages, *instruction])}
        state = sent = [summary, *messages[-2:]]
        if adapter == "reports too much":
            sent = [summary]
        if adapter == "reports too little":
            state = [summary]
        answer = {"type": "result", "id": asked["id"], "messages": state}
    elif asked["type"] == "turn":
        ask([{"role": "system", "content": "You are an agent."}, *sent, {"role": "user", "content": asked["text"]}])
        answer = {"type": "turned", "id": asked["id"]}
    print(json.dumps(answer), flush=True)
