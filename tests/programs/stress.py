"""A file that grows by odd sizes, and readers that check each byte, whatever way it comes.

    stress.py write FILE SECONDS
    stress.py WAY ro|rw FILE SECONDS

The byte at an offset is told by the offset, and is never a NUL. A reader prints how many reads it
made, and fails with the first wrong byte.
"""

import ctypes
import mmap
import os
import platform
import random
import socket
import struct
import sys
import time

# The byte at offset o is PATTERN[o % 251]: a page is not a multiple of it, so that bytes of another
# page are seen.
PATTERN = bytes(1 + (at * 97) % 251 for at in range(251)) * 16_000
# How far before the end readers look: a few pages, since faults are about the last one.
ABOUT = 20_000
# For how long the kernel may believe in an older size than it has told: while others write, their
# answers and those to fstat overtake each other, and what goes by the kernel's size (splice,
# sendfile, aio) sees the end of the file early. In seconds.
EARLY_MAX = 2
LIBC = ctypes.CDLL(None, use_errno=True)


def expected(offset, size):
    begin = offset % 251
    return PATTERN[begin : begin + size]


def write(path, seconds):
    chance = random.Random(1)
    end = time.monotonic() + seconds
    offset = 0
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while time.monotonic() < end:
        size = chance.choice([1, 7, chance.randrange(1, 3000), 4096, 4097])
        assert os.write(file, expected(offset, size)) == size
        offset += size
        time.sleep(0.0002)
    print(offset)


def read_at(file, offset, size):
    return os.pread(file, size, offset)


def read_in_order(file, offset, size):
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


def read_vector(file, offset, size):
    pieces = [bytearray(size // 3), bytearray(size - size // 3)]
    size = os.preadv(file, pieces, offset)
    return b"".join(pieces)[:size]


def read_mapping(file, offset, size):
    # What was mapped beyond the end when it was made is not looked at.
    end = min(offset + size, os.fstat(file).st_size)
    if end <= offset:
        return b""
    begin = offset // mmap.PAGESIZE * mmap.PAGESIZE
    with mmap.mmap(file, end - begin, mmap.MAP_PRIVATE, mmap.PROT_READ, offset=begin) as mapping:
        return mapping[offset - begin :]


def drained(reader, size):
    content = b""
    while len(content) < size:
        content += os.read(reader, size - len(content))
    return content


READER, WRITER = os.pipe()


def read_by_splice(file, offset, size):
    moved = os.splice(file, WRITER, min(size, 60_000), offset_src=offset)
    return drained(READER, moved)


SOCKETS = socket.socketpair()


def read_by_sendfile(file, offset, size):
    moved = os.sendfile(SOCKETS[0].fileno(), file, offset, min(size, 60_000))
    return drained(SOCKETS[1].fileno(), moved)


# io_setup, io_getevents and io_submit have no wrappers in the C library.
CALLS = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}


class Aio:
    """Linux's own asynchronous reads, one at a time."""

    def __init__(self):
        self.setup, self.events, self.submit = CALLS[platform.machine()]
        self.context = ctypes.c_ulong(0)
        self.call(self.setup, 1, ctypes.byref(self.context))

    def call(self, *arguments):
        answer = LIBC.syscall(*arguments)
        if answer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answer

    def read(self, file, offset, size):
        buffer = ctypes.create_string_buffer(size)
        # struct iocb: data, key and flags, opcode 0 (pread), priority, file, buffer, length, offset
        where = ctypes.addressof(buffer)
        block = struct.pack("=QIIHhIQQqQII", 0, 0, 0, 0, 0, file, where, size, offset, 0, 0, 0)
        block = ctypes.create_string_buffer(block, len(block))
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        assert self.call(self.submit, self.context, 1, pointers) == 1
        event = (ctypes.c_int64 * 4)()
        assert self.call(self.events, self.context, 1, 1, event, None) == 1
        if event[2] < 0:
            raise OSError(-event[2], os.strerror(-event[2]))
        return buffer.raw[: event[2]]


WAYS = {
    "read": read_in_order,
    "pread": read_at,
    "readv": read_vector,
    "mmap": read_mapping,
    "splice": read_by_splice,
    "sendfile": read_by_sendfile,
}


def check(read, path, flags, seconds):
    chance = random.Random(2)
    end = time.monotonic() + seconds
    reads, early = 0, None
    file = os.open(path, flags)
    while time.monotonic() < end:
        size = os.fstat(file).st_size
        offset = max(0, size - chance.choice([1, 100, 4096, chance.randrange(1, ABOUT)]))
        content = read(file, offset, chance.choice([ABOUT, size - offset, 4096]) or 1)
        wanted = expected(offset, len(content))
        if content != wanted:
            at = next(at for at, byte in enumerate(content) if byte != wanted[at])
            wrong = f"{content[at]} instead of {wanted[at]} at {offset + at}"
            sys.exit(f"{wrong}, of {len(content)} bytes from {offset}, the size was {size}")
        if content or size == offset:
            early = None
        elif early is None:
            early = time.monotonic()
        elif time.monotonic() > early + EARLY_MAX:
            sys.exit(f"nothing at {offset}, below the size {size}, again and again")
        reads += 1
    print(reads)


def main():
    if sys.argv[1] == "write":
        return write(sys.argv[2], float(sys.argv[3]))
    way, mode, path, seconds = sys.argv[1:]
    read = Aio().read if way == "aio" else WAYS[way]
    flags = os.O_RDONLY if mode == "ro" else os.O_RDWR
    return check(read, path, flags, float(seconds))


main()
