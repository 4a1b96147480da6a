"""Ways to use a file in Python, by their names.

python_files.py FILE WAY...

Whatever fails ends the program with Python's own message.
"""
import logging
import logging.handlers
import mmap
import os
import pathlib
import shutil
import sys

name, *ways = sys.argv[1:]
path = pathlib.Path(name)


def write(mode, text):
    with open(name, mode) as file:
        file.write(text)


def append_and_read():
    with open(name, "a+") as file:
        file.write("more\n")
        file.seek(0)
        print(file.read(), end="")


def read_and_write(at_end):
    with open(name, "r+") as file:
        file.seek(0, os.SEEK_END if at_end else os.SEEK_SET)
        file.write("more\n")


def mapping(**how):
    with open(name, "rb") as file:
        with mmap.mmap(file.fileno(), 0, **how) as mapped:
            print(mapped[:].decode(), end="")


def shared_mapping():
    with open(name, "r+b") as file:
        mmap.mmap(file.fileno(), 0)


def log(handler, lines):
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.addHandler(handler)
    for number in range(1, lines + 1):
        logger.warning("%d", number)
    logging.shutdown()


def rotating():
    return logging.handlers.RotatingFileHandler(name, maxBytes=15, backupCount=1)


def unbuffered():
    with open(name, "ab", buffering=0) as file:
        for number in range(1, 6):
            file.write(b"%d\n" % number)


WAYS = {
    "a": lambda: write("a", "more\n"),
    "a+": append_and_read,
    "r": lambda: print(path.read_text(), end=""),
    "r+": lambda: read_and_write(at_end=False),
    "r+end": lambda: read_and_write(at_end=True),
    "w": lambda: write("w", "gone\n"),
    "x": lambda: write("x", "more\n"),
    "unbuffered": unbuffered,
    "write_text": lambda: path.write_text("gone\n"),
    "copyfile": lambda: shutil.copyfile(name, name + "-copy"),
    "copy2": lambda: shutil.copy2(name, name + "-copy"),
    "replace": lambda: os.replace(name, name + "-other"),
    "mmap": lambda: mapping(access=mmap.ACCESS_READ),
    "mmap-private": lambda: mapping(flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ),
    "mmap-shared": shared_mapping,
    "logging": lambda: log(logging.FileHandler(name), 5),
    "watched": lambda: log(logging.handlers.WatchedFileHandler(name), 5),
    "rotating": lambda: log(rotating(), 9),
}
for way in ways:
    WAYS[way]()
