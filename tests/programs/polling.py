"""Follows FOLLOWED by poll or epoll while lines come to FILE, in lockstep.

    polling.py HOW FOLLOWED FILE ROUNDS

HOW is `poll`, `level` or `edge`: poll(2), epoll by level, epoll by edge (which reads until EAGAIN,
as runtimes with an event loop of their own do). Ends with 1 where a line was not told of, or was
not there; the wait for each has a limit that only a lost one reaches.
"""

import os
import select
import sys

how, followed, path, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
LIMIT = 60

reader = os.open(followed, os.O_RDONLY | os.O_NONBLOCK)
writer = os.open(path, os.O_WRONLY | os.O_APPEND)
if how == "poll":
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    wait = lambda: poll.poll(LIMIT * 1000)
else:
    epoll = select.epoll()
    epoll.register(reader, select.EPOLLIN | (select.EPOLLET if how == "edge" else 0))
    wait = lambda: epoll.poll(LIMIT)


def drain():
    got = b""
    while True:
        try:
            got += os.read(reader, 65536)
        except BlockingIOError:
            return got


drain()
for number in range(rounds):
    line = b"%d\n" % number
    os.write(writer, line)
    got = b""
    # An edge may be told twice, or for what was read already.
    while not got:
        if not wait():
            sys.exit(f"{how}: line {number} of {rounds} was not told of")
        got = drain()
    if got != line:
        sys.exit(f"{how}: {got!r} for {line!r}")
