"""Runs a Python program that the kernel kills as soon as it, or a process that it starts, opens an internet socket.

    python -m tests.support.no_network bot.console.main play script.jsonl

The filter sees what native libraries do too. Linux on x86-64 and arm64.
"""

import ctypes
import platform
import runpy
import socket
import struct
import sys
from typing import Any, Final

# For each machine: its audit architecture (linux/audit.h) and its number of the call socket().
MACHINES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
SET_SECCOMP, SECCOMP_FILTER, NO_NEW_PRIVILEGES = 22, 2, 38  # linux/prctl.h, linux/seccomp.h
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h
ALLOW, KILL = 0x7FFF0000, 0x80000000  # linux/seccomp.h


def supported() -> bool:
    """Whether this machine has such a filter."""
    return sys.platform == "linux" and platform.machine() in MACHINES


def forbid_internet() -> None:
    """Have this process, and all that it starts, killed when it opens an internet socket."""
    machine, call = MACHINES[platform.machine()]
    steps = [
        (LOAD, 0, 0, 4),  # the machine
        (EQUAL, 0, 6, machine),
        (LOAD, 0, 0, 0),  # the call
        (EQUAL, 0, 4, call),
        (LOAD, 0, 0, 16),  # its first argument: the family
        (EQUAL, 1, 0, socket.AF_INET),
        (EQUAL, 0, 1, socket.AF_INET6),
        (RETURN, 0, 0, KILL),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HL", len(steps), ctypes.addressof(held))
    kernel: Any = ctypes.CDLL(None, use_errno=True)
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, SECCOMP_FILTER, program, 0, 0)):
        if kernel.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the kernel takes no filter")


if __name__ == "__main__":
    forbid_internet()
    module, sys.argv = sys.argv[1], sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
