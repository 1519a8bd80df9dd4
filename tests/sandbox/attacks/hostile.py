# Attackers use bare system calls.
# ruff: noqa: PTH108, PTH110, PTH116, PTH118, PTH120, PTH123, PTH207, PTH208
"""Ways out, each tried for real. Standard library only; runs inside the sandbox, and outside as a control.

Every attempt returns what it got hold of, or raises. Only addresses on loopback are ever used.
"""

from __future__ import annotations

import ctypes
import glob
import json
import mmap
import os
import platform
import re
import resource
import signal
import socket
import stat
import sys
from collections.abc import Callable
from typing import Any

MARK = re.compile(b"CAN" + b"ARY-[0-9a-f]{32}")  # in two parts, so that this file is no hit of its own
libc = ctypes.CDLL(None, use_errno=True)
ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {}
X86 = platform.machine() == "x86_64"


def attempt(function):
    ATTEMPTS[function.__name__] = function
    return function


def found(data: bytes) -> str:
    match = MARK.search(data)
    if not match:
        raise LookupError("nothing found")
    return match[0].decode()


def read(path: str, limit: int = 1 << 20) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(limit)


def regular(path: str) -> bytes:
    return read(path) if stat.S_ISREG(os.stat(path).st_mode) else b""


def first(paths, reader=read) -> str:
    for path in paths:
        try:
            return found(reader(path))
        except (OSError, LookupError, ValueError):
            continue
    raise LookupError("nothing found")


def syscall(x86: int, arm: int, *arguments: object) -> int:
    result = libc.syscall(ctypes.c_long(x86 if X86 else arm), *arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def in_a_fork(action: Callable[[], object]) -> str:
    """Run something that may be killed for it; a clean end is a success."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitpid(child, 0)[1]
    if code != 0:
        raise OSError(f"ended with {code}")
    return "worked"


# --- the key ---------------------------------------------------------------------------------------
@attempt
def key_in_the_environment(config):
    return found("\n".join(os.environ.values()).encode())


@attempt
def key_in_the_environment_of_any_process(config):
    return first(glob.glob("/proc/[0-9]*/environ"))


@attempt
def key_in_any_command_line(config):
    return first(glob.glob("/proc/[0-9]*/cmdline"))


@attempt
def key_in_the_memory_of_another_process(config):
    def scan(pid):
        for line in read(f"/proc/{pid}/maps").decode().splitlines():
            if "[heap]" not in line and "[stack]" not in line:
                continue
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(low)
                data = memory.read(high - low)
            if MARK.search(data):
                return data
        return b""

    return first([config["victim"], config["parent"], 1, os.getppid()], scan)


@attempt
def key_through_process_vm_readv(config):
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    buffer = ctypes.create_string_buffer(config["secret_length"])
    here = Vector(ctypes.cast(buffer, ctypes.c_void_p), len(buffer))
    there = Vector(config["secret_address"], config["secret_length"])
    syscall(310, 270, config["victim"], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return found(buffer.raw)


@attempt
def ptrace_another_process(config):
    syscall(101, 117, 0x4206, config["victim"], 0, 0)  # PTRACE_SEIZE
    return "seized"


@attempt
def ptrace_at_all(config):
    return in_a_fork(lambda: syscall(101, 117, 0, 0, 0, 0))  # PTRACE_TRACEME


@attempt
def key_in_an_inherited_descriptor(config):
    return first(glob.glob("/proc/self/fd/*"), regular)


@attempt
def key_in_a_descriptor_of_another_process(config):
    return first([path for path in glob.glob("/proc/[0-9]*/fd/*") if f"/{os.getpid()}/" not in path], regular)


@attempt
def take_a_descriptor_of_another_process(config):
    handle = os.pidfd_open(config["victim"]) if hasattr(os, "pidfd_open") else syscall(434, 434, config["victim"], 0)
    taken = syscall(438, 438, handle, config["victim_fd"], 0)
    return found(os.pread(taken, 4096, 0))


# --- files -----------------------------------------------------------------------------------------
@attempt
def file_of_the_host(config):
    return found(read(config["file"]))


@attempt
def home_of_the_host(config):
    # The interpreter may live there, and is meant to be seen; nothing beside it is.
    others = [name for name in os.listdir(config["home"]) if f"/{name}/" not in sys.executable]
    if not others:
        raise LookupError("nothing but the interpreter")
    return others


@attempt
def git_config_of_the_tree(config):
    return found(read(config["tree"] + "/.git/config"))


@attempt
def dot_env_of_the_tree(config):
    return found(read(config["tree"] + "/.env"))


@attempt
def credentials_below_the_root_of_the_tree(config):
    below = (os.path.join(folder, name) for folder, _, names in os.walk(config["tree"] + "/deep") for name in names)
    return first(below, regular)


@attempt
def probes_of_the_tree(config):
    return first(glob.glob(config["tree"] + "/probes/*"))


@attempt
def pip_conf_of_the_environment(config):
    return found(read(os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "pip.conf")))


@attempt
def link_in_the_tree_that_leads_out(config):
    return found(read(config["tree"] + "/way-out"))


@attempt
def dot_dot_out_of_the_tree(config):
    return found(read(config["tree"] + "/.." * 30 + config["file"]))


@attempt
def file_through_the_root_of_another_process(config):
    return first([f"/proc/{pid}/root{config['file']}" for pid in (1, config["victim"], config["parent"])])


@attempt
def file_handle_that_ignores_mounts(config):
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
    mount = ctypes.c_int()
    path = config["file"] if os.path.exists(config["file"]) else "/usr"
    syscall(303, 264, -100, path.encode(), handle, ctypes.byref(mount), 0)
    return "got a handle"


@attempt
def shared_memory_file_of_the_host(config):
    return found(read("/dev/shm/" + config["shm"]))


@attempt
def shared_memory_segment_of_the_host(config):
    segment = libc.shmget(config["sysv"], 64, 0)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    libc.shmat.restype = ctypes.c_void_p
    return found(ctypes.string_at(libc.shmat(segment, None, 0o10000), 64))


@attempt
def kernel_log(config):
    return syscall(103, 116, 10, None, 0)


@attempt
def raw_memory_or_disk(config):
    opened = [path for path in ("/dev/mem", "/dev/kmem", "/dev/vda", "/dev/sda", "/proc/kcore") if os.path.exists(path)
              and read(path, 16)]  # fmt: skip
    if not opened:
        raise LookupError("nothing opened")
    return opened


@attempt
def make_a_device_node(config):
    os.mknod("/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
    return "made"


# --- network ---------------------------------------------------------------------------------------
def connected(family, kind, address) -> str:
    with socket.socket(family, kind) as probe:
        probe.settimeout(1)
        probe.connect(address)
        return "connected"


@attempt
def loopback_of_the_host_over_tcp(config):
    return connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", config["tcp"]))


@attempt
def loopback_of_the_host_over_tcp6(config):
    return connected(socket.AF_INET6, socket.SOCK_STREAM, ("::1", config["tcp6"]))


@attempt
def loopback_of_the_host_over_udp(config):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.5)
        probe.sendto(b"ping", ("127.0.0.1", config["udp"]))
        return probe.recv(16).decode()


@attempt
def abstract_socket_of_the_host(config):
    return connected(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + config["abstract"])


@attempt
def path_socket_of_the_host(config):
    return connected(socket.AF_UNIX, socket.SOCK_STREAM, config["path"])


@attempt
def vsock(config):
    socket.socket(40, socket.SOCK_STREAM).close()
    return "made"


@attempt
def netlink_socket(config):
    socket.socket(16, socket.SOCK_RAW).close()
    return "made"


@attempt
def packet_socket(config):
    socket.socket(17, socket.SOCK_RAW).close()
    return "made"


@attempt
def raw_socket(config):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "made"


@attempt
def kernel_crypto_socket(config):
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return "made"


@attempt
def network_interfaces_beside_loopback(config):
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    lines = read("/proc/net/dev").decode().splitlines()[2:]
    others += [line.split(":")[0].strip() for line in lines if not line.strip().startswith("lo:")]
    if not others:
        raise LookupError("only loopback")
    return others


# --- writing ---------------------------------------------------------------------------------------
def wrote(folder: str) -> str:
    path = os.path.join(folder, "planted")
    with open(path, "w") as stream:
        stream.write("x")
    os.unlink(path)
    return path


@attempt
def write_into_the_tree(config):
    return wrote(config["tree"])


@attempt
def write_into_a_folder_of_the_host(config):
    return wrote(config["loot"])


@attempt
def write_into_the_system(config):
    return first_written(["/", "/etc", "/usr", "/usr/bin", "/dev", "/launcher", "/gw", "/proc", "/home", "/var"])


def first_written(folders) -> str:
    for folder in folders:
        try:
            return wrote(folder)
        except OSError:
            continue
    raise OSError("none could be written")


@attempt
def write_into_the_environment(config):
    return first_written([os.path.dirname(sys.executable), os.path.dirname(os.__file__)])


@attempt
def kernel_settings(config):
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe"):
        try:
            os.close(os.open(path, os.O_WRONLY))
        except OSError:
            continue
        return path
    raise OSError("none could be opened")


# --- privileges ------------------------------------------------------------------------------------
@attempt
def become_root(config):
    return in_a_fork(lambda: os.setuid(0))


@attempt
def become_root_through_a_setuid_program(config):
    return in_a_fork(lambda: os.execv("/usr/bin/su", ["su", "-c", "true"]))


@attempt
def join_groups(config):
    return in_a_fork(lambda: os.setgroups([0]))


@attempt
def raise_a_limit(config):
    resource.setrlimit(resource.RLIMIT_NPROC, (100_000, 100_000))
    return resource.getrlimit(resource.RLIMIT_NPROC)


@attempt
def new_user_namespace(config):
    return in_a_fork(lambda: syscall(272, 97, 0x10000000))


@attempt
def new_network_namespace(config):
    return in_a_fork(lambda: syscall(272, 97, 0x40000000))


@attempt
def new_namespace_by_clone(config):
    child = syscall(56, 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "cloned"


@attempt
def new_namespace_by_clone3(config):
    arguments = (0x10000000).to_bytes(8, "little") + bytes(24) + int(signal.SIGCHLD).to_bytes(8, "little") + bytes(24)
    child = syscall(435, 435, ctypes.create_string_buffer(arguments, 64), 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "cloned"


@attempt
def join_another_namespace(config):
    def join():
        handle = os.open("/proc/self/ns/uts", os.O_RDONLY)
        syscall(308, 268, handle, 0)

    return in_a_fork(join)


@attempt
def mount_something(config):
    return in_a_fork(lambda: syscall(165, 40, b"none", b"/tmp", b"tmpfs", 0, None))


@attempt
def mount_the_new_way(config):
    return in_a_fork(lambda: syscall(430, 430, b"tmpfs", 0))


@attempt
def change_root(config):
    return in_a_fork(lambda: os.chroot("/tmp"))


@attempt
def kernel_keyring(config):
    return syscall(250, 219, 0, -3, 0)


@attempt
def load_a_bpf_program(config):
    return syscall(321, 280, 0, ctypes.create_string_buffer(128), 128)


@attempt
def performance_events(config):
    event = ctypes.create_string_buffer((1).to_bytes(4, "little") + (112).to_bytes(4, "little") + bytes(104), 112)
    return syscall(298, 241, event, 0, -1, -1, 0)


@attempt
def io_uring(config):
    return syscall(425, 425, 4, ctypes.create_string_buffer(256))


@attempt
def fault_handling_in_user_space(config):
    return syscall(323, 282, 1)


@attempt
def rename_the_host(config):
    return in_a_fork(lambda: socket.sethostname("taken"))


@attempt
def signal_a_process_of_the_host(config):
    os.kill(config["victim"], 0)
    return "reached"


@attempt
def raise_the_priority(config):
    return in_a_fork(lambda: os.nice(-10))


@attempt
def system_call_of_the_32_bit_abi(config):
    # mov eax, 20 (getpid of i386); int 0x80; ret
    return in_a_fork(lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"))


@attempt
def system_call_of_the_x32_abi(config):
    # mov eax, 0x40000027 (getpid of x32); syscall; ret - outside it is at worst "no such call", here it is death
    return in_a_fork(lambda: machine_code(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"))


def machine_code(code: bytes) -> int:
    if not X86:
        raise OSError("only on x86")
    anyhow = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=anyhow)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@attempt
def socket_of_another_run(config):
    return connected(socket.AF_UNIX, socket.SOCK_STREAM, config["other_gateway"])


@attempt
def see_other_processes(config):
    others = [path for path in glob.glob("/proc/[0-9]*") if int(path[6:]) not in (os.getpid(), 1)]
    if not others:
        raise LookupError("alone, but for the first process of the namespace")
    return others


@attempt
def variables_of_the_workflow(config):
    names = [name for name in os.environ if name.startswith(("GITHUB_", "RUNNER_", "ACTIONS_", "COMPRESSION_EVAL"))]
    if not names:
        raise LookupError("none")
    return names


def run_all(config: dict[str, Any], names: list[str]) -> dict[str, Any]:
    report = {}
    for name in names:
        try:
            report[name] = {"hit": True, "said": str(ATTEMPTS[name](config))[:300]}
        except BaseException as exc:
            report[name] = {"hit": False, "said": f"{type(exc).__name__}: {exc}"[:300]}
    return report


def compress(messages, config):
    return [{"role": "user", "content": json.dumps(run_all(config, sorted(ATTEMPTS)))}]


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(run_all(given["config"], given["names"])))
