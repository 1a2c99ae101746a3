"""Run a command as on a file system without hard links: `python -m tests.e2e.without_links COMMAND`.

The kernel refuses each call of `link` and `linkat`, as it does on exFAT.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {"x86_64": (86, 265), "aarch64": (37,)}
"""Numbers of the calls, by machine."""
_NO_NEW_PRIVILEGES, _FILTER = 38, (22, 2)  # of prctl
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


class Program(ctypes.Structure):
    """A filter for seccomp(2)."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse_links() -> None:
    """Have each later call fail, also in programs that this one starts."""
    calls = CALLS[platform.machine()]
    steps = [(_LOAD, 0, 0, 0)]
    steps += [(_JUMP_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    program = Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    control = ctypes.CDLL(None, use_errno=True).prctl
    if control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or control(*_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "cannot refuse links")


if __name__ == "__main__":
    refuse_links()
    os.execvp(sys.argv[1], sys.argv[1:])
