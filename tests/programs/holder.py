"""Holds on to a mount while its daemon dies: an open file, mappings of it, and the directory.

holder.py MOUNT NAME

Prints `held`, waits for the end of standard input, and then says what is left, as JSON: `read` and
`mapping` are `right` (a prefix of what was there, which `length` tells), `wrong`, or the name of
the error; `stat`, `write` and `directory` are `done` or the name of the error.
"""
import errno
import json
import mmap
import os
import sys

mount, name = sys.argv[1:]
os.chdir(mount)
fd = os.open(name, os.O_RDONLY)
writer = os.open(name, os.O_WRONLY | os.O_APPEND)
before = os.pread(fd, 1 << 26, 0)
mapping = mmap.mmap(fd, len(before), mmap.MAP_PRIVATE, mmap.PROT_READ)
print("held", flush=True)
sys.stdin.readline()


def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]


def read():
    """The bytes that were there, read again."""
    try:
        after = b""
        while len(after) < len(before):
            more = os.pread(fd, len(before) - len(after), len(after))
            if not more:
                break
            after += more
        return "right" if before.startswith(after) else "wrong"
    except OSError as error:
        return errno.errorcode[error.errno]


def mapped():
    """In a child, since a fault on a dead mount ends the process with SIGBUS."""
    child = os.fork()
    if child == 0:
        os._exit(0 if mapping[:] == before else 1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "SIGBUS" if os.WTERMSIG(status) == 7 else "killed"
    return "right" if os.WEXITSTATUS(status) == 0 else "wrong"


print(json.dumps({
    "length": len(before),
    "read": read(),
    "mapping": mapped(),
    "stat": attempt(lambda: os.fstat(fd)),
    "write": attempt(lambda: os.write(writer, b"never\n")),
    "directory": attempt(lambda: os.stat(".")),
}), flush=True)
