"""Appends to one file for some seconds while others read it by another name, each byte checked.

growing.py WRITTEN READ SECONDS: each reader prints the number of its reads that met wrong bytes, of
those that ended before the size that was told, and whether there were many reads.
"""

import os
import random
import sys
import time

WRITTEN, READ, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
PATTERN = bytes(i % 255 + 1 for i in range(255 * 800))
END = time.monotonic() + SECONDS


def at(offset, n):
    return PATTERN[offset % 255 : offset % 255 + n]


def write():
    fd, offset = os.open(WRITTEN, os.O_WRONLY | os.O_APPEND), os.stat(WRITTEN).st_size
    while time.monotonic() < END:
        n = random.randint(1, 3000)
        assert os.write(fd, at(offset, n)) == n
        offset += n
        time.sleep(0.0005)


def pread(fd, pipe, offset, size):
    return os.pread(fd, 60000, offset)


def sendfile(fd, pipe, offset, size):
    n = os.sendfile(pipe[1], fd, offset, 60000)
    return os.read(pipe[0], n) if n else b""


def splice(fd, pipe, offset, size):
    n = os.splice(fd, pipe[1], 60000, offset_src=offset)
    return os.read(pipe[0], n) if n else b""


def read(copy, flags):
    pipe = os.pipe()
    wrong = reads = short = 0
    while time.monotonic() < END:
        fd = os.open(READ, flags)
        for _ in range(20):
            size = os.fstat(fd).st_size
            offset = max(0, size - random.randint(1, 6000))
            got = copy(fd, pipe, offset, size)
            wrong += got != at(offset, len(got))
            # What the size told is there. A pipe may take less than that.
            short += len(got) < size - offset and copy is pread
            reads += 1
        os.close(fd)
    os.write(1, f"{wrong} {short} {reads > 40}\n".encode())


def run(work, *arguments):
    if os.fork() == 0:
        work(*arguments)
        os._exit(0)


run(write)
for way in (pread, sendfile, splice):
    for mode in (os.O_RDONLY, os.O_RDWR):
        run(read, way, mode)
for _ in range(7):
    assert os.wait()[1] == 0
