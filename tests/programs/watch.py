"""Watches files and directories for IN_MODIFY, as inotify(7) tells it.

watch.py PATH...

Prints `watching`, and then a line `PATH NAME` for each event (NAME is `-` for the path itself)
until the end of standard input.
"""
import ctypes
import os
import select
import struct
import sys

IN_MODIFY = 0x2
EVENT = struct.Struct("iIII")

libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
paths = {}
for path in sys.argv[1:]:
    watch = libc.inotify_add_watch(fd, os.fsencode(path), IN_MODIFY)
    if watch < 0:
        raise OSError(ctypes.get_errno(), path)
    paths[watch] = path
print("watching", flush=True)

while True:
    ready, _, _ = select.select([fd, sys.stdin], [], [])
    if sys.stdin in ready:
        break
    events = os.read(fd, 65536)
    while events:
        watch, mask, _, length = EVENT.unpack_from(events)
        name = events[EVENT.size : EVENT.size + length].rstrip(b"\0")
        events = events[EVENT.size + length :]
        if mask & IN_MODIFY:
            print(paths[watch], os.fsdecode(name) or "-", flush=True)
