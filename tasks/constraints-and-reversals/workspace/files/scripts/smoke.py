"""Send jobs to a running relay and wait until all are done."""
import json
import socket
import sys
import time

INTAKE = ("127.0.0.1", 8431)
ADMIN = ("127.0.0.1", 8413)


def ask(stream, line):
    stream.write(line + "\n")
    stream.flush()
    return stream.readline().strip()


def main(jobs):
    with socket.create_connection(INTAKE) as sock, sock.makefile("rw") as stream:
        for number in range(jobs):
            reply = ask(stream, f"PUT smoke-{number}")
            if not reply.startswith("OK "):
                sys.exit(f"job {number} refused: {reply}")
    with socket.create_connection(ADMIN) as sock, sock.makefile("rw") as stream:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            stats = json.loads(ask(stream, "STATS"))
            if stats["done"] >= jobs:
                break
            time.sleep(0.1)
    print(f"sent {jobs}", stats)
    sys.exit(stats["done"] != jobs or stats["twice"] != 0)


main(int(sys.argv[1]))
