"""Serve intake and admin on two loopback ports."""
import argparse
import json
import socketserver
import threading
import tomllib
from pathlib import Path

from relay_queue.ledger import Ledger
from relay_queue.worker_pool_v3 import WorkerPool


def answer_lines(verbs):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            ledger = Ledger(self.server.path, timeout=5)
            for raw in self.rfile:
                verb, _, rest = raw.decode().strip().partition(" ")
                act = verbs.get(verb)
                text = act(ledger, rest) if act else f"ERR unknown verb {verb}"
                self.wfile.write(f"{text}\n".encode())

    return Handler


def stats(ledger, _):
    counts = {state: ledger.count(state) for state in ("ready", "leased", "done")}
    return json.dumps(counts | {"twice": ledger.delivered_twice()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=None)
    options = parser.parse_args()
    config = tomllib.loads(options.config.read_text())
    path = config["ledger"]["path"]
    Ledger(path, timeout=5).create()
    pool = WorkerPool(path, lambda job: None, **config["pool"])
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer.daemon_threads = True
    tables = {"intake": {"PUT": lambda ledger, text: f"OK {ledger.put(text)}"}, "admin": {"STATS": stats}}
    for section, verbs in tables.items():
        address = (config[section]["host"], config[section]["port"])
        server = socketserver.ThreadingTCPServer(address, answer_lines(verbs))
        server.path = path
        threading.Thread(target=server.serve_forever, daemon=True).start()
    pool.start()
    threading.Event().wait(options.seconds)
    pool.stop()


if __name__ == "__main__":
    main()
