"""Appends tagged records to a file, one write(2) each, and says which returned with success.

writer.py FILE WRITER FIRST [--count N] [--fill BYTES] [--pause SECONDS] [--dup]
          [--segments N] [--pieces N]

The records are those of src/model.rs. For each one it prints `ack NUMBER`, at once; at the first
failure `fail NUMBER ERRNO`, and ends with 1. A write that takes only a part of a record is `short`.
With --dup every write goes through a duplicate of the descriptor that is closed after it, with
--segments it is a writev(2) of so many segments. With --pieces a record is so many write(2)s, and
what one of them leaves is written by another: `ack` says that the last piece was taken.
"""
import argparse
import errno
import itertools
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("writer", type=int)
parser.add_argument("first", type=int)
parser.add_argument("--count", type=int)
parser.add_argument("--fill", type=int, default=60)
parser.add_argument("--pause", type=float, default=0)
parser.add_argument("--dup", action="store_true")
parser.add_argument("--segments", type=int)
parser.add_argument("--pieces", type=int)
options = parser.parse_args()


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def record(number):
    filler = chr(ord("a") + (options.writer * 7 + number) % 26)
    head = f"<{options.writer} {number} {options.fill}>"
    return (head + filler * options.fill + "\n").encode()


def parts(content, count):
    borders = [len(content) * at // count for at in range(count + 1)]
    return [content[begin:end] for begin, end in itertools.pairwise(borders)]


def write(fd, content):
    if options.segments is None:
        return os.write(fd, content)
    return os.writev(fd, parts(content, options.segments))


def append(fd, content):
    if options.pieces is not None:
        for rest in parts(content, options.pieces):
            while rest:
                rest = rest[os.write(fd, rest):]
        return len(content)
    if not options.dup:
        return write(fd, content)
    twin = os.dup(fd)
    try:
        return write(twin, content)
    finally:
        os.close(twin)


number = options.first
try:
    fd = os.open(options.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    last = itertools.count(options.first)
    if options.count is not None:
        last = itertools.islice(last, options.count)
    for number in last:
        content = record(number)
        written = append(fd, content)
        say("ack" if written == len(content) else "short", number)
        if options.pause:
            time.sleep(options.pause)
except OSError as error:
    say("fail", number, errno.errorcode[error.errno])
    sys.exit(1)
