# Attackers use bare system calls.
# ruff: noqa: PTH108, PTH116, PTH123, PTH211
"""Subjects that break things, or try to lie about them; one child each."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.request

LAST = [{"role": "user", "content": "short"}]
HELD = []


def say(value):
    return [{"role": "user", "content": json.dumps(value)}]


def ask(token=None, **body):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"messages": [{"role": "user", "content": "x"}], **body}).encode(),
        headers={"Authorization": "Bearer " + (token or os.environ["OPENAI_API_KEY"])},
    )
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as exc:
        return exc.code


def fork_bomb(messages):
    children = []
    try:
        while len(children) < 5000:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError as exc:
        return say({"children": len(children), "error": exc.errno})
    return say({"children": len(children), "error": None})


def memory_bomb(messages):
    try:
        held = bytearray(64 * 2**30)
    except MemoryError:
        return say("MemoryError")
    return say(len(held))


def memory_bomb_of_many(messages):
    for _ in range(20):
        if os.fork() == 0:
            held = []
            while True:
                held.append(os.urandom(2**20) * 8)
    signal.pause()


def disk_bomb(messages):
    written = {}
    for folder in ("/tmp", os.environ["HOME"], "/dev/shm"):
        total = 0
        try:
            for index in range(64):
                with open(f"{folder}/filler-{index}", "wb") as stream:
                    while True:
                        total += stream.write(bytes(2**20))
                        stream.flush()
                        if stream.tell() >= 32 * 2**20:
                            break
        except OSError as exc:
            written[folder] = [total, exc.errno]
    return say(written)


def one_large_file(messages):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("/tmp/large", "wb") as stream:
        try:
            stream.truncate(2**40)
        except OSError as exc:
            return say(exc.errno)
    return say("made")


def output_bomb(messages):
    while True:
        os.write(2, b"x" * 65536)


def workflow_commands(messages):
    print("::set-env name=PATH::/evil\n::add-mask::a\n::error::fooled")
    sys.stderr.write("::stop-commands::x\n")
    return LAST


def ignores_term(messages):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def busy_loop(messages):
    while True:
        pass


def daemonises(messages):
    """Leave a process behind that holds the output pipe and tries to outlive everything."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(3600)
        os._exit(0)
    return say(os.stat("/proc/self/ns/pid").st_ino)


def tells_its_session(messages):
    return say(os.getsid(0))


def thread_left_running(messages):
    threading.Thread(target=lambda: time.sleep(3600)).start()
    return LAST


def kills_itself(messages):
    os.kill(os.getpid(), signal.SIGKILL)
    return say("survived as process one")


def kills_everybody(messages):
    os.kill(-1, signal.SIGKILL)
    return LAST


def crashes(messages):
    import ctypes

    ctypes.string_at(0)


def deep_recursion(messages):
    sys.setrecursionlimit(10**9)

    def down(n):
        return down(n + 1) + 1

    return down(0)


def fake_result_on_stdout(messages):
    body = json.dumps({"nonce": "", "phase": "step", "messages": [{"role": "user", "content": "forged"}]}).encode()
    os.write(1, struct.pack(">I", len(body)) + body)
    return LAST


def _channels():
    """Find the private descriptors: pipes or sockets beside the three standard ones."""
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        yield number


def garbage_on_the_channel(messages):
    for number in _channels():
        try:
            os.write(number, b"\x00\x00\x00\x05hello")
        except OSError:
            continue
    return LAST


def flood_on_the_channel(messages):
    for number in _channels():
        try:
            for _ in range(1_000):
                os.write(number, b"\x00" * 65536)
        except OSError:
            continue
    return LAST


def forged_frame_of_another_run(messages):
    body = json.dumps({"nonce": "0" * 32, "phase": "step", "messages": LAST}).encode()
    for number in _channels():
        try:
            os.write(number, struct.pack(">I", len(body)) + body)
        except OSError:
            continue
    return LAST


def announces_four_gigabytes(messages):
    for number in _channels():
        try:
            os.write(number, b"\xff\xff\xff\xff")
        except OSError:
            continue
    time.sleep(3600)


def half_a_frame(messages):
    for number in _channels():
        try:
            os.write(number, b"\x00\x00\x10\x00{")
        except OSError:
            continue
    os._exit(0)


def closes_everything(messages):
    os.closerange(0, 256)
    time.sleep(3600)


def huge_result(messages):
    return [{"role": "user", "content": "x" * (64 * 2**20)}]


def deeply_nested_result(messages):
    inner = []
    for _ in range(100_000):
        inner = [inner]
    return [{"role": "user", "content": "x", "more": inner}]


def claims_things(messages):
    ask(model="provider/dearest")
    import __main__  # noqa: F401

    return [{"role": "user", "content": "x", "usage": {"cost": 0}, "seconds": -5, "score": 5}]


def asks_for_more(messages):
    return say(
        {
            "other model": ask(model="provider/dearest"),
            "image": ask(
                messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
            ),
            "function": ask(tools=[{"type": "function", "function": {"name": "x"}}]),
            "provider's tool": ask(tools=[{"type": "web_search"}, {"type": "mcp", "server_url": "http://127.0.0.1:1"}]),
            "functions": ask(functions=[{"name": "x"}]),
            "unknown field": ask(api_base="http://127.0.0.1:1"),
            "end": ask(),
        }
    )


def replays_a_token(messages, token):
    return say([ask(token=token), ask(token="x"), ask()])


def overspends(messages):
    return say([ask() for _ in range(8)])


def floods_the_gateway(messages):
    """Hold many half-open requests, then ask properly."""
    port = int(os.environ["OPENAI_BASE_URL"].split(":")[2].split("/")[0])
    held = []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999\r\n")
        held.append(connection)
    return say([len(held), ask()])


def smuggles_in_a_header(messages):
    port = int(os.environ["OPENAI_BASE_URL"].split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET http://127.0.0.1:1/v1/models HTTP/1.1\r\nHost: other\r\n\r\n")
        return say([connection.recv(200).decode("latin-1").split("\r\n")[0], ask()])


def links_and_fifos_at_home(messages):
    home = os.environ["HOME"]
    for name in ("result.json", "status", "messages.json"):
        os.mkfifo(f"{home}/{name}.fifo")
        os.symlink("/dev/zero", f"{home}/{name}")
    return LAST


def outlives_the_evaluator(messages):
    """Take away all that would end this process with its parent, tell so by a model call, and stay."""
    import ctypes

    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG
    for module in list(sys.modules.values()):
        if hasattr(module, "_exit"):
            module._exit = lambda code: None
    for number in range(1, 65):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=ask, daemon=True).start()
    time.sleep(600)


def limits(messages):
    kinds = ("CORE", "NOFILE", "FSIZE", "AS", "NPROC", "CPU")
    return say({kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds})


def _gateway():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(20)
    connection.connect("/gw/llm.sock")
    return connection


def _head(length, token=None):
    token = token or os.environ["OPENAI_API_KEY"]
    lines = ["POST /v1/chat/completions HTTP/1.1", f"Authorization: Bearer {token}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def unfinished_bodies(messages, count):
    """Announce bodies of the largest size and send all of each but the end."""
    held = []
    for _ in range(count):
        try:
            connection = _gateway()
            connection.sendall(_head(8 * 2**20))
            connection.settimeout(0.2)
            for _ in range(7):
                connection.sendall(bytes(2**20))
        except OSError:
            pass
        held.append(connection)
    return say(len(held))


def one_unfinished_body(messages):
    connection = _gateway()
    HELD.append(connection)  # or it would be closed with the frame
    connection.sendall(_head(100) + b"{")
    time.sleep(0.3)
    return say("done")


def flood_of_connections(messages, processes, each):
    """Open connections from many processes, past any limit of one process, and keep them open."""
    ready, told = os.pipe()
    for _ in range(processes):
        if os.fork() == 0:
            held = []
            try:
                for _ in range(each):
                    held.append(_gateway())
                    held[-1].send(b"P")
            except OSError:
                pass
            os.write(told, b"x")
            signal.pause()
    for _ in range(processes):
        os.read(ready, 1)
    return say("flooded")


def endless_connections(messages):
    """Open and close connections until nobody answers."""
    opened = 0
    try:
        while opened < 100_000:
            with _gateway() as connection:
                connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
                if not connection.recv(100):
                    break
            opened += 1
    except OSError:
        pass
    return say(opened)


def huge_number(messages):
    try:
        return say(ask(max_tokens=10**400))
    except OSError as exc:
        return say(str(exc))


def hangs_up(messages):
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    connection = _gateway()
    connection.sendall(_head(len(body)) + body)
    time.sleep(0.3)
    connection.close()
    return LAST


def dies_in_a_call(messages):
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()
    connection = _gateway()
    connection.sendall(_head(len(body)) + body)
    time.sleep(0.3)
    os._exit(7)


def odd_requests(messages, requests):
    """Send raw bytes; return the first line that each is answered with."""
    token = os.environ["OPENAI_API_KEY"]
    lines = []
    for text in requests:
        with _gateway() as connection:
            connection.sendall(text.replace("TOKEN", token).encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
            try:
                lines.append(connection.recv(200).decode("latin-1").split("\r\n")[0])
            except OSError as exc:
                lines.append(type(exc).__name__)
    return say([*lines, ask()])


def memfd_bomb(messages):
    """Fill memory files that are held open but never mapped."""
    block = os.urandom(2**20)
    while True:
        handle = os.memfd_create("x")
        for _ in range(60):
            os.write(handle, block)


def memfd_in_transit(messages):
    """Fill memory files that no process holds: each is sent over a socket, not received, and closed."""
    block = os.urandom(2**20)
    for _ in range(40):
        pair = socket.socketpair()
        HELD.append(pair)
        for _ in range(10):
            handle = os.memfd_create("x")
            for _ in range(32):
                os.write(handle, block)
            socket.send_fds(pair[0], [b"x"], [handle])
            os.close(handle)
    return LAST


def memfd_bomb_of_many(messages):
    """The same, spread over processes so that none of them holds much."""
    for _ in range(12):
        if os.fork() == 0:
            block = os.urandom(2**20)
            for _ in range(4):
                handle = os.memfd_create("x")
                for _ in range(60):
                    os.write(handle, block)
            signal.pause()
    signal.pause()


def mapped_memory_bomb(messages):
    """Map shared memory in many processes, of which none takes much."""
    import mmap

    for _ in range(8):
        if os.fork() == 0:
            held = mmap.mmap(-1, 128 * 2**20)
            for page in range(0, len(held), 4096):
                held[page] = 1
            signal.pause()
    signal.pause()


def _mapping(size, flags, handle=-1):
    """Return the address of a mapping, from the bare system call."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.munmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, size, 3, flags, handle, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return libc, address


def unmapped_shared_memory(messages, device=False):
    """Fill shared mappings and unmap all of them but a page: the pages stay, and no process maps them."""
    import ctypes

    handle = os.open("/dev/zero", os.O_RDWR) if device else -1
    size = 32 * 2**20
    for _ in range(40):
        libc, address = _mapping(size, 0x01 if device else 0x21, handle)
        ctypes.memset(address, 1, size)
        libc.munmap(address + 4096, size - 4096)
    time.sleep(60)


def pages_in_pipes(messages):
    """Give a small part of a huge page to a pipe and unmap the page: the part keeps the whole."""
    import ctypes

    libc, address = _mapping(4096, 0x22)
    parts = (ctypes.c_size_t * 2)(address, 4096)
    _, writer = os.pipe()
    done = libc.vmsplice(writer, parts, ctypes.c_ulong(1), 0)
    return say([done, ctypes.get_errno()])


def socket_buffers(messages, family="unix"):
    """Fill the buffers of sockets, which belong to the kernel, in several processes."""
    for _ in range(20):
        if os.fork() == 0:
            listener = socket.create_server(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                while True:
                    if family == "unix":
                        pair = socket.socketpair()
                    else:
                        pair = (socket.create_connection(listener.getsockname()), listener.accept()[0])
                    HELD.append(pair)
                    for end in pair:
                        end.setblocking(False)
                        with contextlib.suppress(BlockingIOError):
                            while True:
                                end.send(bytes(65536))
            time.sleep(60)
    time.sleep(60)


def _private_memory(megabytes):
    """Take memory that is nobody else's, and hold it."""
    import mmap

    held = mmap.mmap(-1, megabytes * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, len(held), 4096):
        held[page] = 1
    time.sleep(60)


def memory_behind_a_name(messages, name):
    """Take a name that reads like a line of the kernel's table of sizes, wait until it was read, and take memory."""
    import ctypes

    ctypes.CDLL(None).prctl(15, name.encode("latin-1"), 0, 0, 0)
    time.sleep(1)
    for _ in range(4):
        if os.fork() == 0:
            _private_memory(300)
    time.sleep(6)
    return LAST


def memory_behind_a_dead_leader(messages):
    """End the first thread of a process alone: the kernel's tables of the process are empty, its threads live on."""
    for _ in range(4):
        if os.fork() == 0:
            threading.Thread(target=_private_memory, args=(300,), daemon=True).start()
            _leave_alone()
    time.sleep(6)
    return LAST


def _leave_alone():
    """End the first thread of this process, and no other."""
    import ctypes
    import platform

    time.sleep(0.05)
    ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)


def memory_handed_on(messages, to):
    """Hand memory on, without end, from each process or thread to one that it starts and then ends itself."""
    import mmap

    size, part = 300 * 2**20, bytes(4 * 2**20)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    def fill(held, at):
        held[at : at + len(part)] = part
        return min(at + len(part), size - len(part))

    def next_thread(held, at):
        at = fill(held, at)
        while True:
            # Threads that were left are not always gone yet, and too many of them may not be there at once.
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=next_thread, args=(held, at), daemon=True).start()
                return
            time.sleep(0.01)

    for _ in range(5):
        if os.fork() == 0:
            held, at = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 0
            held.madvise(14)  # huge pages: less to copy
            if to == "threads":
                next_thread(held, at)
                _leave_alone()
            while True:
                at = fill(held, at)
                if os.fork():
                    os._exit(0)
    time.sleep(60)  # ended long before, unless the machine is so busy that filling memory takes that long
    return LAST


def _scratch_pages():
    """Yield pages of a scratch file without end; the file is emptied and written again whenever they are used up."""
    handle, size = os.open("/tmp/pages", os.O_CREAT | os.O_RDWR), 48 * 2**20
    while True:
        os.ftruncate(handle, 0)
        os.pwrite(handle, bytes(size), 0)
        for place in range(0, size, 4096):
            yield handle, place


def pages_in_sockets(messages, how):
    """Give one byte of each page of a file to a socket and empty the file: the byte keeps the page."""
    pages, taken = _scratch_pages(), 0
    reader, writer = os.pipe()
    while taken < 2 * 2**30:
        pair = socket.socketpair()
        HELD.append(pair)
        pair[0].setblocking(False)
        pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
        with contextlib.suppress(BlockingIOError):
            while True:
                handle, place = next(pages)
                if how == "sendfile":
                    os.sendfile(pair[0].fileno(), handle, place, 1)
                else:
                    os.splice(handle, writer, 1, offset_src=place)
                    os.splice(reader, pair[0].fileno(), 1, flags=2)
                taken += 4096
    time.sleep(3)
    return LAST


def huge_pages_in_sockets(messages):
    """Send a byte of a huge page without copying, to somebody who does not read, and unmap the page."""
    import ctypes

    huge = 2 * 2**20
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    sender = socket.create_connection(listener.getsockname())
    HELD.append((sender, listener.accept()))
    sender.setblocking(False)
    sender.setsockopt(socket.SOL_SOCKET, 60, 1)  # SO_ZEROCOPY
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
    sender.send(bytes(40_000))
    with contextlib.suppress(OSError):  # once as many pages are locked as may be
        for _ in range(1500):
            libc, address = _mapping(2 * huge, 0x22)
            start = -(-address // huge) * huge
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(huge), 14)
            ctypes.memset(start, 1, huge)
            sender.send((ctypes.c_char * 1).from_address(start), 0x4000000)  # MSG_ZEROCOPY
            libc.munmap(address, 2 * huge)
    time.sleep(3)
    return LAST


def copies_files(messages):
    """Copy as honest programs do, by the fast ways that the kernel has and that the sandbox may not allow."""
    import shutil
    import subprocess

    block = os.urandom(3 * 2**20)
    with open("/tmp/source", "wb") as stream:
        stream.write(block)
    shutil.copy("/tmp/source", "/tmp/by-python")
    subprocess.run(["/bin/cp", "/tmp/source", "/tmp/by-cp"], check=True)
    with open("/tmp/by-cat", "wb") as stream:
        subprocess.run(["/bin/cat", "/tmp/source"], stdout=stream, check=True)
    left, right = socket.socketpair()

    def send():
        with open("/tmp/source", "rb") as source, left:
            left.sendfile(source)

    threading.Thread(target=send).start()
    with open("/tmp/by-socket", "wb") as stream:
        while part := right.recv(65536):
            stream.write(part)
    if shutil.which("node"):
        script = "require('fs').copyFileSync('/tmp/source', '/tmp/by-node')"
        subprocess.run(["node", "-e", script], check=True)
    copies = [entry.path for entry in os.scandir("/tmp") if entry.name.startswith("by-")]
    return say({path: open(path, "rb").read() == block for path in copies})


def few_large_buffers(messages):
    """Ask for the largest buffers that can be had, and tell how much ten pairs of sockets hold."""
    held = 0
    for _ in range(10):
        pair = socket.socketpair()
        HELD.append(pair)
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**28)
            end.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    held += end.send(bytes(65536))
    return say(held)


def touches_page_tables():
    """Read one byte in each of many large pages: nothing is mapped but the tables that say so."""
    import ctypes

    count, size = 400_000, 2 * 2**20
    _, address = _mapping(count * size, 0x4022)
    for index in range(count):
        ctypes.string_at(address + index * size, 1)


def raises_at_a_limit(messages, which):
    """Meet a limit as an honest program would, without catching anything."""
    if which == "memory":
        HELD.append(bytearray(2**33))
    while which == "descriptors":
        HELD.append(os.open("/dev/null", os.O_RDONLY))
    while which == "processes":
        if os.fork() == 0:
            signal.pause()
    while which == "threads":
        threading.Thread(target=signal.pause, daemon=True).start()
    if which == "processor":
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (1, hard))
        while True:
            pass
    with open("/tmp/x", "wb") as first, open("/tmp/y", "wb") as second:
        for _ in range(40):
            first.write(bytes(2**20))
        while True:
            second.write(bytes(2**20))


def sysv_bomb(messages):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    taken = 0
    for _ in range(64):
        segment = libc.shmget(0, 64 * 2**20, 0o1600)
        if segment < 0:
            return say([taken, ctypes.get_errno()])
        address = libc.shmat(segment, None, 0)
        ctypes.memset(address, 1, 64 * 2**20)
        libc.shmdt(ctypes.c_void_p(address))
        taken += 64
    return say([taken, 0])


def sysv_objects(messages):
    """Kernel memory that outlives its maker: message queues and semaphores."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    made = []
    for make in (lambda: libc.msgget(0, 0o1600), lambda: libc.semget(0, 32_000, 0o1600)):
        made.append([make(), ctypes.get_errno()])
    return say(made)


def posix_shm_bomb(messages):
    """Fill /dev/shm, and keep the files' memory after their names are gone."""
    taken = 0
    try:
        while taken < 4096:
            handle = os.open(f"/dev/shm/x{taken}", os.O_CREAT | os.O_RDWR)
            os.unlink(f"/dev/shm/x{taken}")
            os.write(handle, os.urandom(2**20))
            taken += 1
    except OSError as exc:
        return say([taken, exc.errno])
    return say([taken, 0])


def descriptor_exhaustion(messages):
    opened = 0
    try:
        while opened < 100_000:
            os.dup(2)
            opened += 1
    except OSError as exc:
        return [{"role": "user", "content": "x " + str([opened, exc.errno])}]


def watches(messages):
    """Take as many inotify instances as there are."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    taken = 0
    while libc.inotify_init() >= 0:
        taken += 1
    return [{"role": "user", "content": f"x {taken}"}]


def huge_environment(messages):
    """Start programs with more arguments and a larger environment than fit."""
    results = []
    for arguments, environment in ((["x" * 2**17] * 1000, {}), (["true"], {f"N{i}": "x" * 2**16 for i in range(1000)})):
        child = os.fork()
        if child == 0:
            try:
                os.execve("/usr/bin/true", arguments, environment)
            except OSError as exc:
                os._exit(exc.errno)
        results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return say(results)
