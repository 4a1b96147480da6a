"""Makes one system call on a file when its standard input ends, and says what came of it.

calls.py CALL FILE

It opens what the call needs and prints `held`. After the call it prints `ok` or the name of the
error, and ends. `echo` is what a shell does for `>>`: open, write, close, of which the first that
fails is told.
"""
import errno
import os
import sys

call, path = sys.argv[1:]
flags = {"write": os.O_WRONLY | os.O_APPEND, "fsync": os.O_WRONLY | os.O_APPEND,
         "close": os.O_WRONLY | os.O_APPEND, "read": os.O_RDONLY, "fstat": os.O_RDONLY}
# The kernel knows the name then, and asks whether it still stands for the same.
if os.path.exists(path) and call in flags:
    file = os.open(path, flags[call])
if call == "close":
    os.write(file, b"before\n")


def echo():
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(opened, call.encode() + b"\n")
    os.close(opened)


calls = {
    "stat": lambda: os.stat(path),
    "open": lambda: os.open(path, os.O_RDONLY),
    "create": lambda: os.open(path + "-new", os.O_WRONLY | os.O_CREAT),
    "echo": echo,
    "ls": lambda: os.listdir(os.path.dirname(path)),
    "mkdir": lambda: os.mkdir(path + "-directory"),
    "getxattr": lambda: os.getxattr(path, "user.courant.head"),
    "write": lambda: os.write(file, call.encode() + b"\n"),
    "fsync": lambda: os.fsync(file),
    "close": lambda: os.close(file),
    "read": lambda: os.pread(file, 10, 0),
    "fstat": lambda: os.fstat(file),
}
os.write(1, b"held\n")
sys.stdin.read()
try:
    calls[call]()
    said = "ok"
except OSError as error:
    said = errno.errorcode[error.errno]
os.write(1, (said + "\n").encode())
