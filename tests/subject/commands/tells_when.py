"""A command that tells when it sets in, if it is started with `yes`."""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "start":
        answer = {"type": "ready", "tells_when": sys.argv[1] == "yes"}
    elif asked["type"] == "trigger":
        answer = {"type": "triggered", "id": asked["id"], "compresses": asked["tokens"] >= 120_000}
    else:
        answer = {"type": "result", "id": asked["id"], "messages": asked["messages"][-2:]}
    print(json.dumps(answer), flush=True)
