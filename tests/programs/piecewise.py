"""Appends tagged records to a file, each in several write(2)s, and says which are whole.

piecewise.py FILE WRITER FIRST [--count N] [--fill BYTES] [--pieces N] [--pause SECONDS]

The records are those of src/model.rs. For each one whose last piece was written it prints
`ack NUMBER`; at the first failure `fail NUMBER ERRNO`, and ends with 1.
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
parser.add_argument("--pieces", type=int, default=4)
parser.add_argument("--pause", type=float, default=0)
options = parser.parse_args()


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def record(number):
    filler = chr(ord("a") + (options.writer * 7 + number) % 26)
    head = f"<{options.writer} {number} {options.fill}>"
    return (head + filler * options.fill + "\n").encode()


def append(fd, content):
    borders = [len(content) * at // options.pieces for at in range(options.pieces + 1)]
    for begin, end in itertools.pairwise(borders):
        rest = memoryview(content)[begin:end]
        while rest:
            rest = rest[os.write(fd, rest):]


number = options.first
try:
    fd = os.open(options.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    last = itertools.count(options.first)
    if options.count is not None:
        last = itertools.islice(last, options.count)
    for number in last:
        append(fd, record(number))
        say("ack", number)
        if options.pause:
            time.sleep(options.pause)
except OSError as error:
    say("fail", number, errno.errorcode[error.errno])
    sys.exit(1)
