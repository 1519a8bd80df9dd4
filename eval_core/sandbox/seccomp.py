"""The system-call filter of the sandbox, as a BPF program written by hand.

A deny-list: a compressor may be any Python with any native extension, so an allow-list would break
honest targets with each libc. What is denied is what reaches other processes, the kernel's wide
interfaces, new namespaces, and every socket family that the empty network namespace does not cut off.
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

from eval_core.base.errors import UserError

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
EPERM, EINVAL, ENOSYS, ENOPROTOOPT, EAFNOSUPPORT = 1, 22, 38, 92, 97

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_GREATER_EQUAL = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K
NUMBER, ARCH, ARG0, ARG1, ARG2, ARG3 = 0, 4, 16, 24, 32, 40
"""Offsets into struct seccomp_data; both supported machines are little-endian, so the low word comes first."""

SOCKET_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NEW_NAMESPACE = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
X32_BIT = 0x40000000
SET_DEATH_SIGNAL, SIGKILL = 1, 9  # PR_SET_PDEATHSIG
CLONE_VM, CLONE_VFORK_OR_THREAD = 0x100, 0x4000 | 0x10000
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF, SO_ZEROCOPY = 1, 7, 8, 60

# name: (x86_64, aarch64); None where the machine has no such call. SysV memory, queues and semaphores are on the list
# because no process needs to map them or hold them open: outside of a control group nobody could count them. Nor
# pages that were given to a pipe (vmsplice), a small part of which keeps a huge one.
DENIED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "set_mempolicy": (238, 237),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}

# One byte of a page that is given to a socket keeps the page when its file is emptied, and the socket counts the byte.
# copy_file_range is not on the list: it writes to files alone, and copies.
DENIED_WHERE_COUNTED: dict[str, tuple[int, int]] = {
    "sendfile": (40, 71),
    "splice": (275, 76),
    "tee": (276, 77),
}


@dataclass(frozen=True)
class Abi:
    """The numbers of one machine."""

    name: str
    audit_arch: int
    column: int
    """Which column of `DENIED` holds its numbers."""
    clone: int
    socket: int
    socketpair: int
    ioctl: int
    prctl: int
    memfd_create: int
    mmap: int
    setsockopt: int
    clone3: int = 435


X86_64 = Abi(
    "x86_64", 0xC000003E, 0, clone=56, socket=41, socketpair=53, ioctl=16, prctl=157, memfd_create=319, mmap=9,
    setsockopt=54,
)  # fmt: skip
AARCH64 = Abi(
    "aarch64", 0xC00000B7, 1, clone=220, socket=198, socketpair=199, ioctl=29, prctl=167, memfd_create=279, mmap=222,
    setsockopt=208,
)  # fmt: skip


def abi_of(machine: str | None = None) -> Abi:
    """Return the numbers of this machine, or say that there are none."""
    machine = machine or platform.machine()
    abi = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}.get(machine.lower())
    if abi is None:
        raise UserError(f"no system-call filter for {machine!r}; use --sandbox docker on this machine")
    return abi


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _when(number: int, body: bytes) -> bytes:
    """Run the body, which loads over the number, only for one system call."""
    return _line(JUMP_EQUAL, number, 0, len(body) // 8) + body


def program(abi: Abi, *, counted: bool = False) -> bytes:
    """Return the filter: foreign ABIs die, denied calls fail with EPERM, everything else passes.

    Where memory is counted, without a control group, there is no shared memory besides files in scratch: a memory file
    in transit between two sockets is held by no process, and a shared mapping keeps its pages when all but one of them
    are unmapped, so neither could be counted. Nor could pages that sockets keep, so sockets only get copies, and their
    buffers, which are estimated, stay as large as they are. To programs most of it is an old kernel, or a file that
    cannot be sent this way (EINVAL: Python, libuv, Go and Rust all read and write instead).
    """
    lines = [
        _line(LOAD, ARCH),
        _line(JUMP_EQUAL, abi.audit_arch, 1, 0),
        _line(RETURN, KILL_PROCESS),  # `int 0x80` would otherwise bring another numbering past the filter
        _line(LOAD, NUMBER),
    ]
    if abi is X86_64:
        lines += [_line(JUMP_GREATER_EQUAL, X32_BIT, 0, 1), _line(RETURN, KILL_PROCESS)]
    family = _line(LOAD, ARG0)
    for index, known in enumerate(SOCKET_FAMILIES):
        family += _line(JUMP_EQUAL, known, len(SOCKET_FAMILIES) - index, 0)
    family += _line(RETURN, ERRNO | EAFNOSUPPORT) + _line(RETURN, ALLOW)
    lines += [_when(abi.socket, family), _when(abi.socketpair, family)]
    # Memory that one process hands on to the next, with neither a copy nor a wait, is never where it is looked for.
    handed_on = (
        _line(JUMP_ANY_BIT, CLONE_VM, 0, 2)
        + _line(JUMP_ANY_BIT, CLONE_VFORK_OR_THREAD, 1, 0)
        + _line(RETURN, ERRNO | EPERM)
    )
    lines.append(
        _when(
            abi.clone,
            _line(LOAD, ARG0)
            + _line(JUMP_ANY_BIT, NEW_NAMESPACE, 0, 1)
            + _line(RETURN, ERRNO | EPERM)
            + (handed_on if counted else b"")
            + _line(RETURN, ALLOW),
        )
    )
    # clone3 keeps its flags behind a pointer that a filter cannot follow; libc falls back to clone on ENOSYS.
    lines.append(_when(abi.clone3, _line(RETURN, ERRNO | ENOSYS)))
    if counted:
        lines.append(_when(abi.memfd_create, _line(RETURN, ERRNO | ENOSYS)))
        lines.append(
            _when(
                abi.mmap,
                _line(LOAD, ARG3)
                + _line(JUMP_ANY_BIT, MAP_SHARED, 0, 2)
                + _line(JUMP_ANY_BIT, MAP_ANONYMOUS, 0, 1)
                + _line(RETURN, ERRNO | EPERM)
                + _line(RETURN, ALLOW),
            )
        )
        lines.append(
            _when(
                abi.setsockopt,
                _line(LOAD, ARG1)
                + _line(JUMP_EQUAL, SOL_SOCKET, 0, 6)
                + _line(LOAD, ARG2)
                + _line(JUMP_EQUAL, SO_ZEROCOPY, 0, 1)
                + _line(RETURN, ERRNO | ENOPROTOOPT)
                # A larger buffer is a wish, which the kernel may cut as well: it is granted, and nothing changes.
                + _line(JUMP_EQUAL, SO_SNDBUF, 1, 0)
                + _line(JUMP_EQUAL, SO_RCVBUF, 0, 1)
                + _line(RETURN, ERRNO)
                + _line(RETURN, ALLOW),
            )
        )
        lines += [_when(both[abi.column], _line(RETURN, ERRNO | EINVAL)) for both in DENIED_WHERE_COUNTED.values()]
    terminal = _line(LOAD, ARG1)
    for request in TERMINAL_INJECTION:
        terminal += _line(JUMP_EQUAL, request, 0, 1) + _line(RETURN, ERRNO | EPERM)
    lines.append(_when(abi.ioctl, terminal + _line(RETURN, ALLOW)))
    # The kernel ends the child with us by this signal; a child that could set another would outlive a killed evaluator.
    lines.append(
        _when(
            abi.prctl,
            _line(LOAD, ARG0)
            + _line(JUMP_EQUAL, SET_DEATH_SIGNAL, 0, 3)
            + _line(LOAD, ARG1)
            + _line(JUMP_EQUAL, SIGKILL, 1, 0)
            + _line(RETURN, ERRNO | EPERM)
            + _line(RETURN, ALLOW),
        )
    )
    for numbers in DENIED.values():
        number = numbers[abi.column]
        if number is not None:
            lines.append(_when(number, _line(RETURN, ERRNO | EPERM)))
    lines.append(_line(RETURN, ALLOW))
    return b"".join(lines)
