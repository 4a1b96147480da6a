"""Writes to two files of one journal in the ways that are not O_APPEND, and says what came of it.

offsets.py FILE1 FILE2

Prints one `NAME OUTCOME` line for each attempt: the number of bytes, `done`, or the name of errno.
"""
import errno
import fcntl
import os
import sys

one, two = sys.argv[1:]


def attempt(name, action):
    try:
        outcome = action()
    except OSError as error:
        outcome = errno.errorcode[error.errno]
    print(name, "done" if outcome is None else outcome, flush=True)


def head():
    return os.stat(one).st_size


fd = os.open(one, os.O_WRONLY)
os.lseek(fd, 0, os.SEEK_END)
attempt("seek-end", lambda: os.write(fd, b"seek-end\n"))
# The kernel counts on from there, and is right as long as nobody else appends.
attempt("go-on", lambda: os.write(fd, b"go-on\n"))

late = os.open(one, os.O_WRONLY)
fcntl.fcntl(late, fcntl.F_SETFL, fcntl.fcntl(late, fcntl.F_GETFL) | os.O_APPEND)
attempt("late-append", lambda: os.write(late, b"late-append\n"))

remembered = head()
other = os.open(two, os.O_WRONLY)
attempt("first-at-head", lambda: os.pwrite(fd, b"first-at-head\n", remembered))
attempt("second-at-head", lambda: os.pwrite(other, b"second-at-head\n", remembered))
attempt("same-mount", lambda: os.pwrite(fd, b"same-mount\n", remembered))

attempt("at-zero", lambda: os.pwrite(fd, b"at-zero\n", 0))
attempt("beyond", lambda: os.pwrite(fd, b"beyond\n", head() + 1))
attempt("far-beyond", lambda: os.pwrite(other, b"far-beyond\n", head() + (1 << 30)))
attempt("truncate", lambda: os.ftruncate(fd, 1))
attempt("open-truncate", lambda: os.open(one, os.O_WRONLY | os.O_TRUNC))
attempt("open-truncate-append", lambda: os.open(two, os.O_WRONLY | os.O_TRUNC | os.O_APPEND))
attempt("allocate", lambda: os.posix_fallocate(fd, 0, head() + 4096))
attempt("rename", lambda: os.rename(one, one + "-renamed"))
attempt("link", lambda: os.link(one, one + "-linked"))
attempt("unlink", lambda: os.unlink(one))

both = os.open(one, os.O_RDWR | os.O_APPEND)
attempt("both-ways", lambda: os.write(both, b"both-ways\n"))

os.fstat(fd)
attempt("append-flag", lambda: os.pwritev(fd, [b"append-flag\n"], 0, os.RWF_APPEND))
with open(two, "a") as elsewhere:
    elsewhere.write("elsewhere\n")
attempt("append-flag-late", lambda: os.pwritev(fd, [b"lost\n"], 0, os.RWF_APPEND))
