//! A program that holds a file, and looks at it again when it is told to.

use std::path::Path;
use std::process::{Command, Stdio};
use tests::patience::{LIMIT, until};
use tests::running::Running;

/// Opens a file, or maps it and closes it. When its standard input ends it prints what it reads of
/// it, up to its end, or sends of it, or which error it gets.
#[track_caller]
pub fn holder(how: &str, file: &Path) -> Running {
    // Python's own mapping would keep a descriptor beside it.
    let script = "import ctypes, errno, mmap, os, sys
fd = os.open(sys.argv[2], os.O_RDONLY)
if sys.argv[1] == 'map':
    size = os.fstat(fd).st_size
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    place = call(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    assert place != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
    held = (ctypes.c_char * size).from_address(place)
    os.close(fd)
print('held', file=sys.stderr, flush=True)
sys.stdin.read()
try:
    if sys.argv[1] == 'send':
        os.sendfile(1, fd, 0, 1 << 16)
    elif sys.argv[1] == 'map':
        sys.stdout.buffer.write(held.raw)
    else:
        at = 0
        while got := os.pread(fd, 1 << 20, at):
            sys.stdout.buffer.write(got)
            at += len(got)
except OSError as error:
    print(errno.errorcode[error.errno])";
    let mut command = Command::new("python3");
    command.args(["-c", script, how]).arg(file).stdin(Stdio::piped());
    let running = Running::start(&mut command);
    until("it is held", || running.stderr().contains("held"));
    running
}

/// Tells it to look again; what it prints.
#[track_caller]
pub fn let_read(holder: &mut Running) -> Vec<u8> {
    drop(holder.stdin());
    assert!(holder.wait(LIMIT).success(), "{}", holder.stderr());
    holder.stdout()
}
