"""A port on the sandbox's own loopback that leads to the gateway's unix socket."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

CHUNK = 65536


def _relay(near: socket.socket, gateway: str) -> None:
    """Copy both ways until both sides have ended."""
    with near, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as far, contextlib.suppress(OSError):
        far.connect(gateway)
        other = {near: far, far: near}
        reading = [near, far]
        while reading:
            for source in select.select(reading, [], [])[0]:
                data = source.recv(CHUNK)
                if data:
                    other[source].sendall(data)
                else:
                    reading.remove(source)
                    other[source].shutdown(socket.SHUT_WR)


def _serve(listener: socket.socket, gateway: str) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        try:
            threading.Thread(target=_relay, args=(near, gateway), daemon=True).start()
        except RuntimeError:  # no more threads can be had at present; this connection is lost, the next need not be
            near.close()


def open_bridge(gateway: str) -> int:
    """Listen on a free port of 127.0.0.1 and return it; every connection is piped to the gateway."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(listener, gateway), daemon=True, name="gateway-bridge").start()
    port: int = listener.getsockname()[1]
    return port
