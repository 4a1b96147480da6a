"""Appends blocks of one letter and prints what each write(2) answered: one number a line.

large_writes.py FILE LETTER LENGTH COUNT

A short answer is followed by a write of the rest, as programs do.
"""
import os
import sys

name, letter, length, count = sys.argv[1:]
fd = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
for _ in range(int(count)):
    rest = memoryview(letter.encode() * int(length))
    while rest:
        written = os.write(fd, rest)
        print(written)
        rest = rest[written:]
