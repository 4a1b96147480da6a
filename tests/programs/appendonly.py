"""What a file that may only grow answers to each operation, as JSON: {operation: answer}.

    appendonly.py DIRECTORY [--chattr]

Each operation gets a file of its own with ten bytes. With --chattr the file is a local one that
`chattr +a` made append-only; without it, it is taken to be a journal. An answer is a value, or the
name of an errno.
"""

import ctypes
import ctypes.util
import errno
import fcntl
import json
import mmap
import os
import stat
import subprocess
import sys

LIBC = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
CONTENT = b"0123456789"
APPEND = os.O_WRONLY | os.O_APPEND
OPERATIONS = {}


def operation(name):
    def put(function):
        assert name not in OPERATIONS, name
        OPERATIONS[name] = function
        return function

    return put


def call(name, *arguments):
    """A function of the C library, with its errno as an exception."""
    answer = getattr(LIBC, name)(*arguments)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


class Open:
    """A descriptor that is closed at the end."""

    def __init__(self, path, flags):
        self.number = os.open(path, flags, 0o644)

    def __enter__(self):
        return self.number

    def __exit__(self, *_):
        os.close(self.number)


def content(path):
    with open(path, "rb") as file:
        return file.read().decode()


def through(flags, act):
    """An operation on a descriptor that was opened so."""

    def run(path):
        with Open(path, flags) as file:
            return act(file, path)

    return run


def grown(act):
    """The content after the act."""

    def run(file, path):
        act(file)
        return content(path)

    return run


OPERATIONS["open for appending, write"] = through(APPEND, grown(lambda f: os.write(f, b"ab")))
OPERATIONS["open for reading and appending, write"] = through(
    os.O_RDWR | os.O_APPEND, grown(lambda f: os.write(f, b"ab"))
)
OPERATIONS["open for writing without O_APPEND"] = through(os.O_WRONLY, lambda f, p: "opened")
OPERATIONS["open with O_TRUNC"] = through(os.O_WRONLY | os.O_TRUNC, lambda f, p: "opened")
OPERATIONS["open with O_TRUNC and O_APPEND"] = through(APPEND | os.O_TRUNC, lambda f, p: "opened")
OPERATIONS["open with O_CREAT and O_APPEND"] = through(APPEND | os.O_CREAT, lambda f, p: "opened")
OPERATIONS["open with O_CREAT and O_EXCL"] = through(
    APPEND | os.O_CREAT | os.O_EXCL, lambda f, p: "opened"
)
OPERATIONS["open with O_DIRECTORY"] = through(os.O_RDONLY | os.O_DIRECTORY, lambda f, p: "opened")
OPERATIONS["open with O_NOFOLLOW"] = through(os.O_RDONLY | os.O_NOFOLLOW, lambda f, p: "opened")
OPERATIONS["open with O_PATH"] = through(os.O_PATH, lambda f, p: "opened")
OPERATIONS["open with O_NOATIME"] = through(os.O_RDONLY | os.O_NOATIME, lambda f, p: "opened")

OPERATIONS["pwrite below the end, with O_APPEND"] = through(
    APPEND, grown(lambda f: os.pwrite(f, b"ab", 2))
)
OPERATIONS["pwrite beyond the end, with O_APPEND"] = through(
    APPEND, grown(lambda f: os.pwrite(f, b"ab", 20))
)
OPERATIONS["writev"] = through(APPEND, grown(lambda f: os.writev(f, [b"a", b"b"])))
OPERATIONS["pwritev2 with RWF_DSYNC"] = through(
    APPEND, grown(lambda f: os.pwritev(f, [b"ab"], 0, os.RWF_DSYNC))
)
OPERATIONS["write of nothing"] = through(APPEND, lambda f, p: os.write(f, b""))
OPERATIONS["write with O_SYNC"] = through(APPEND | os.O_SYNC, grown(lambda f: os.write(f, b"ab")))
OPERATIONS["write through a read-only descriptor"] = through(
    os.O_RDONLY, lambda f, p: os.write(f, b"ab")
)
OPERATIONS["read through a write-only descriptor"] = through(APPEND, lambda f, p: os.read(f, 4))


@operation("position after an append")
def position(path):
    with Open(path, APPEND) as file:
        os.write(file, b"ab")
        return os.lseek(file, 0, os.SEEK_CUR)


@operation("read back through the same descriptor")
def read_back(path):
    with Open(path, os.O_RDWR | os.O_APPEND) as file:
        os.write(file, b"ab")
        return os.pread(file, 100, 8).decode()


@operation("clear O_APPEND with fcntl")
def clear_append(path):
    with Open(path, APPEND) as file:
        fcntl.fcntl(file, fcntl.F_SETFL, 0)
        return "cleared"


OPERATIONS["pread beyond the end"] = through(os.O_RDONLY, lambda f, p: len(os.pread(f, 9, 20)))
OPERATIONS["pread over the end"] = through(os.O_RDONLY, lambda f, p: os.pread(f, 9, 8).decode())
OPERATIONS["readv"] = through(os.O_RDONLY, lambda f, p: os.readv(f, [bytearray(3), bytearray(9)]))


def seek(offset, whence):
    return through(os.O_RDONLY, lambda f, p: os.lseek(f, offset, whence))


OPERATIONS["lseek beyond the end"] = seek(99, os.SEEK_SET)
OPERATIONS["lseek below 0"] = seek(-1, os.SEEK_SET)
OPERATIONS["lseek to the end"] = seek(0, os.SEEK_END)
OPERATIONS["SEEK_DATA from the start"] = seek(0, os.SEEK_DATA)
OPERATIONS["SEEK_HOLE from the start"] = seek(0, os.SEEK_HOLE)
OPERATIONS["SEEK_DATA at the end"] = seek(10, os.SEEK_DATA)
OPERATIONS["SEEK_HOLE at the end"] = seek(10, os.SEEK_HOLE)

OPERATIONS["fsync"] = through(APPEND, lambda f, p: os.fsync(f))
OPERATIONS["fdatasync"] = through(APPEND, lambda f, p: os.fdatasync(f))
OPERATIONS["fsync of a read-only descriptor"] = through(os.O_RDONLY, lambda f, p: os.fsync(f))
OPERATIONS["fsync of the directory"] = lambda path: through(
    os.O_RDONLY | os.O_DIRECTORY, lambda f, p: os.fsync(f)
)(os.path.dirname(path))
OPERATIONS["sync_file_range"] = through(
    APPEND,
    lambda f, p: call("sync_file_range", f, ctypes.c_int64(0), ctypes.c_int64(10), 7),
)
OPERATIONS["posix_fadvise"] = through(
    os.O_RDONLY, lambda f, p: os.posix_fadvise(f, 0, 0, os.POSIX_FADV_WILLNEED)
)

OPERATIONS["truncate to less"] = lambda path: os.truncate(path, 5)
OPERATIONS["truncate to its size"] = lambda path: os.truncate(path, 10)
OPERATIONS["truncate to more"] = lambda path: os.truncate(path, 20)
OPERATIONS["ftruncate to less"] = through(APPEND, lambda f, p: os.ftruncate(f, 5))
OPERATIONS["ftruncate to its size"] = through(APPEND, lambda f, p: os.ftruncate(f, 10))


def fallocate(mode):
    arguments = (ctypes.c_int64(0), ctypes.c_int64(8192))
    return through(os.O_RDWR | os.O_APPEND, lambda f, p: call("fallocate", f, mode, *arguments))


OPERATIONS["fallocate"] = fallocate(0)
OPERATIONS["fallocate, keeping the size"] = fallocate(1)
OPERATIONS["fallocate, punching a hole"] = fallocate(3)

OPERATIONS["rename"] = lambda path: os.rename(path, path + "-new")
OPERATIONS["rename over it"] = lambda path: os.rename(neighbour(path), path)
OPERATIONS["link"] = lambda path: os.link(path, path + "-new")
OPERATIONS["unlink"] = os.unlink
OPERATIONS["chmod"] = lambda path: os.chmod(path, 0o600)
OPERATIONS["chown"] = lambda path: os.chown(path, 1, 1)
OPERATIONS["utimens to now"] = lambda path: os.utime(path)
OPERATIONS["utimens to a given time"] = lambda path: os.utime(path, (1, 1))
OPERATIONS["access for writing"] = lambda path: os.access(path, os.W_OK)
OPERATIONS["access for executing"] = lambda path: os.access(path, os.X_OK)
OPERATIONS["st_size"] = lambda path: os.stat(path).st_size
OPERATIONS["st_nlink"] = lambda path: os.stat(path).st_nlink
OPERATIONS["st_blksize"] = lambda path: os.stat(path).st_blksize
OPERATIONS["is a regular file"] = lambda path: stat.S_ISREG(os.stat(path).st_mode)
OPERATIONS["setxattr user.x"] = lambda path: os.setxattr(path, "user.x", b"1")
OPERATIONS["getxattr user.x"] = lambda path: os.getxattr(path, "user.x").decode()
OPERATIONS["removexattr user.x"] = lambda path: os.removexattr(path, "user.x")
OPERATIONS["ioctl FS_IOC_GETFLAGS"] = through(
    os.O_RDONLY, lambda f, p: bool(fcntl.ioctl(f, 0x80086601, bytes(8)))
)

OPERATIONS["private mapping"] = through(
    os.O_RDONLY,
    lambda f, p: mmap.mmap(f, 10, mmap.MAP_PRIVATE, mmap.PROT_READ)[:].decode(),
)
OPERATIONS["shared mapping to read, O_RDONLY"] = through(
    os.O_RDONLY,
    lambda f, p: mmap.mmap(f, 10, mmap.MAP_SHARED, mmap.PROT_READ)[:].decode(),
)
OPERATIONS["shared mapping to write, O_RDWR"] = through(
    os.O_RDWR | os.O_APPEND,
    lambda f, p: len(mmap.mmap(f, 10, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)),
)


@operation("copy_file_range out of it")
def copy_out(path):
    with Open(path, os.O_RDONLY) as source, Open("/dev/shm", os.O_TMPFILE | os.O_RDWR) as target:
        try:
            return os.copy_file_range(source, target, 10)
        except OSError as failure:
            # Between file systems the kernel may refuse; cp goes on with reads then.
            if failure.errno != errno.EXDEV:
                raise
            return 10


@operation("copy_file_range into it")
def copy_into(path):
    with Open(path, os.O_RDONLY) as source, Open(path, APPEND) as target:
        return os.copy_file_range(source, target, 10)


@operation("sendfile out of it")
def sendfile_out(path):
    reader, writer = os.pipe()
    with Open(path, os.O_RDONLY) as source:
        os.sendfile(writer, source, 0, 10)
    return os.read(reader, 20).decode()


@operation("sendfile into it")
def sendfile_into(path):
    with Open(path, os.O_RDONLY) as source, Open(path, APPEND) as target:
        return os.sendfile(target, source, 0, 10)


@operation("splice from a pipe into it")
def splice_into(path):
    reader, writer = os.pipe()
    os.write(writer, b"ab")
    with Open(path, APPEND) as target:
        return os.splice(reader, target, 2)


def locked(act):
    return through(os.O_RDWR | os.O_APPEND, lambda f, p: act(f))


OPERATIONS["flock"] = locked(lambda f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB))
OPERATIONS["fcntl lock"] = locked(lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB))

OPERATIONS["look up below it"] = lambda path: os.stat(path + "/x").st_size
OPERATIONS["create a file of 256 bytes' name"] = lambda path: open(
    os.path.join(os.path.dirname(path), "x" * 256), "a"
).close()
OPERATIONS["open a directory for writing"] = lambda path: os.close(
    os.open(os.path.dirname(path), os.O_WRONLY)
)
OPERATIONS["unlink a directory"] = lambda path: os.unlink(folder(path))
OPERATIONS["rmdir a directory with the file in it"] = lambda path: os.rmdir(os.path.dirname(path))
OPERATIONS["rmdir an empty directory"] = lambda path: os.rmdir(folder(path))
OPERATIONS["rename an empty directory"] = lambda path: os.rename(folder(path), path + "-new")
OPERATIONS["mkdir over it"] = os.mkdir
OPERATIONS["mkfifo"] = lambda path: os.mkfifo(path + "-fifo")
OPERATIONS["symlink"] = lambda path: os.symlink("x", path + "-link")
OPERATIONS["mknod of a regular file"] = lambda path: os.mknod(path + "-node", 0o644 | stat.S_IFREG)
OPERATIONS["open with O_TMPFILE"] = lambda path: os.close(
    os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR)
)
OPERATIONS["unlink an empty new file"] = lambda path: os.unlink(neighbour(path))
OPERATIONS["rename an empty new file"] = lambda path: os.rename(neighbour(path), path + "-new")
OPERATIONS["link an empty new file"] = lambda path: os.link(neighbour(path), path + "-new")
OPERATIONS["truncate an empty new file to more"] = lambda path: os.truncate(neighbour(path), 3)


def neighbour(path):
    """A file without a byte beside the file."""
    with Open(path + "-empty", os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        return path + "-empty"


def folder(path):
    """An empty directory beside the file."""
    os.mkdir(path + "-folder")
    return path + "-folder"


def answer(act, path):
    try:
        value = act(path)
    except OSError as failure:
        return errno.errorcode.get(failure.errno, str(failure.errno))
    except ValueError as failure:
        return f"refused: {failure}"
    return "done" if value is None else str(value)


def main():
    root, is_local = sys.argv[1], "--chattr" in sys.argv[2:]
    answers = {}
    for number, (name, act) in enumerate(OPERATIONS.items()):
        directory = os.path.join(root, f"operation-{number}")
        os.mkdir(directory)
        path = os.path.join(directory, "file")
        with open(path, "ab") as file:
            file.write(CONTENT)
        if is_local:
            subprocess.run(["chattr", "+a", path], check=True)
        try:
            answers[name] = answer(act, path)
        finally:
            if is_local:
                subprocess.run(["chattr", "-R", "-f", "-a", directory], check=False)
    json.dump(answers, sys.stdout, indent=1)


main()
