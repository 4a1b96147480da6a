"""Copies a file to standard output in the ways that go round read(2): copies.py WAY FILE."""
import mmap
import os
import sys

way, name = sys.argv[1:]
fd = os.open(name, os.O_RDONLY)
size = os.fstat(fd).st_size


if way == "sendfile":
    while os.sendfile(1, fd, None, 1 << 20):
        pass
elif way == "splice":
    read_end, write_end = os.pipe()
    while moved := os.splice(fd, write_end, 1 << 16):
        while moved:
            content = os.read(read_end, moved)
            os.write(1, content)
            moved -= len(content)
elif way == "private-mapping":
    if size:
        with mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapping:
            sys.stdout.buffer.write(mapping[:])
elif way == "readv":
    buffers = [bytearray(7), bytearray(4096), bytearray(131072)]
    while count := os.readv(fd, buffers):
        sys.stdout.buffer.write(b"".join(buffers)[:count])
else:
    sys.exit(f"no such way: {way}")
