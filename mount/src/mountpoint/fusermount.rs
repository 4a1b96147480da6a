//! Mounting without root, by fusermount3(1): a program with the right to it, which sends us the
//! connection.

use super::Error;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "fusermount3";

/// Names the descriptor by which it sends the connection (`FUSE_COMMFD_ENV` of libfuse).
const CONNECTION: &str = "_FUSE_COMMFD";

/// What it says when this user may not open the device.
const DENIED: &str = "failed to open /dev/fuse: Permission denied";

/// Mounts at `path`, for this user alone: what others may see is root's to say (/etc/fuse.conf).
pub(super) fn mount(path: &Path, source: &str) -> Result<OwnedFd, Error> {
    let options = format!("subtype=courant,default_permissions,fsname={}", escaped(source));
    let failed = |cause: io::Error| complaint("mount on", path, cause.to_string());
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|errno| failed(errno.into()))?;
    let mut command = Command::new(PROGRAM);
    // Its standard input is the one descriptor that nobody else can inherit by chance.
    command.args(["-o", &options, "--"]).arg(path).env(CONNECTION, "0").stdin(theirs);
    run(&mut command, "mount on", path)?;
    // The command holds the other end: without it the wait ends where nothing was sent.
    drop(command);
    receive(&ours).map_err(failed)
}

/// Takes away a mount of this user.
pub(super) fn unmount(path: &Path) -> Result<(), Error> {
    let mut command = Command::new(PROGRAM);
    command.args(["-u", "-z", "--"]).arg(path).stdin(Stdio::null());
    run(&mut command, "unmount", path)
}

fn run(command: &mut Command, attempt: &'static str, path: &Path) -> Result<(), Error> {
    let Output { status, stderr, .. } = command.output().map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => Error::NoFusermount,
        _ => complaint(attempt, path, cause.to_string()),
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(refused(attempt, path, last_line(&stderr))),
    }
}

/// The descriptor that was sent.
fn receive(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut sent = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut sent, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = sent.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::Error::other("it sent no connection"))
}

/// Options end with a comma.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,")
}

/// What it said last, without its name.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.trim_end().lines().last().unwrap_or("it did not say why");
    line.strip_prefix(PROGRAM).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line).to_owned()
}

fn refused(attempt: &'static str, path: &Path, line: String) -> Error {
    // It opens the device with the rights of who runs it.
    if line.contains(DENIED) {
        return Error::Device(io::ErrorKind::PermissionDenied.into());
    }
    complaint(attempt, path, line)
}

fn complaint(attempt: &'static str, path: &Path, complaint: String) -> Error {
    Error::Fusermount { attempt, path: path.into(), complaint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_in_one_line() {
        // Case: what it said, what is told
        let cases = [
            (
                "fusermount3: user has no write access to mountpoint /m\n",
                "user has no write access to mountpoint /m",
            ),
            ("a\nfusermount3: b\n", "b"),
            ("", "it did not say why"),
        ];
        for (stderr, expected) in cases {
            assert_eq!(last_line(stderr.as_bytes()), expected);
        }
        assert_eq!(escaped("http://h/a,b\\c"), "http://h/a\\,b\\\\c");
    }
}
