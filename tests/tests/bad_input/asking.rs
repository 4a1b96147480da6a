//! Requests that can't succeed: names that no journal can have, journals that are not there,
//! offsets that are gone, and bytes that are no protocol.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::patience::LIMIT;
use tests::shell::{self, Ran, cat};
use tests::world::{Up, journals};

/// The status that curl got for a request.
#[track_caller]
fn status(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    // As it is: curl would tidy a path with dots.
    curl.args(["-s", "-S", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}"]);
    shell::run(curl.args(arguments), LIMIT).ok().text()
}

#[test]
fn names_that_no_journal_can_have_are_refused_on_the_mount() {
    let up = Up::start();
    let second = up.second();
    up.bash("echo kept >> app.log", &[]).ok();
    // Case: the name, and what the shell says. Temporary files of editors and rsync are refused so
    // that these fail at their first step.
    let long = "n".repeat(256);
    let cases = [
        (long.as_str(), "File name too long"),
        (".journal", "Operation not permitted"),
        (".app.log.Wqu5sW", "Operation not permitted"),
        ("sedaB3dEf", "Operation not permitted"),
        ("4913", "Operation not permitted"),
        (".app.log.swp", "Operation not permitted"),
        ("app.log~", "Operation not permitted"),
        (".#app.log", "Operation not permitted"),
        ("new.tmp", "Operation not permitted"),
        // A journal is no directory: nothing nests in it.
        ("app.log/inner", "Not a directory"),
    ];
    for mount in [up.mount(), second.mount()] {
        for (name, errno) in cases {
            let ran = shell::bash(mount.path(), "echo lost >> \"$1\"", &[name]);
            assert_eq!(ran.code, Some(1), "{name}");
            assert!(ran.stderr.contains(errno), "{name}: {}", ran.stderr);
        }
        let listed = shell::bash(mount.path(), "ls -A", &[]).ok().text();
        assert_eq!(listed, "app.log");
    }
}

#[test]
fn odd_names_that_can_be_encoded_come_back_as_they_were() {
    let up = Up::start();
    let second = up.second();
    let names =
        ["with space", "per%cent", "a:b;c", "quote'\"", "back\\slash", "\u{fc}ber", "-dash"];
    for name in names {
        up.bash("echo here >> \"./$1\"", &[name]).ok();
        assert_eq!(cat(&second.file(name)), b"here\n", "{name}");
    }
    let listed = shell::bash(second.mount().path(), "printf '%s\\n' *", &[]).ok().text();
    let mut listed: Vec<&str> = listed.lines().collect();
    let mut expected = names;
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn bad_names_over_http_are_the_client_s_fault() {
    let up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    let ground = tests::ground::folder("body-");
    let body = ground.path().join("body");
    fs::write(&body, "lost\n").unwrap();
    let body = format!("@{}", body.display());
    for path in ["/local/a%20b", "/local//log", "/x", "/local/", "/local/../log", "/%ff%fe"] {
        let url = format!("{}{path}", up.url());
        let got = status(&["-X", "PUT", "--data-binary", &body, &url]);
        assert!(got.starts_with('4'), "PUT {path}: {got}");
    }
    assert_eq!(up.bash("ls -A", &[]).ok().text(), "log");
    assert_eq!(cat(&up.file("log")), b"kept\n");
}

#[test]
fn a_missing_journal_is_not_found_on_every_way() {
    let up = Up::start();
    let second = up.second();
    for mount in [up.mount(), second.mount()] {
        let ran = shell::bash(mount.path(), "cat missing", &[]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("No such file or directory"), "{}", ran.stderr);
    }
    assert_eq!(status(&[&up.journal_url("missing")]), "404");
    assert_eq!(status(&["-I", &up.journal_url("missing")]), "404");
    let ran = journals(&up, &["append", "-l", "name=local/missing"]);
    assert!(ran.refusal(1).contains("name=local/missing"), "{}", ran.stderr);
    // Case: none of them has made it.
    assert_eq!(up.bash("ls -A", &[]).ok().text(), "");
}

/// Its store is the root that `--file-root` names.
const TRIMMED: &str = r#"journals:
- spec:
    name: local/trimmed
    replication: 1
    fragment:
      length: 1048576
      compression_codec: NONE
      stores: ["file:///"]
      refresh_interval: 1s
"#;

/// A journal of which the store has bytes 1024 to 2048 and nobody anything below.
fn trimmed(up: &Up, store: &Path) -> Ran {
    let content: Vec<u8> = (b'a'..=b'p').flat_map(|letter| [letter; 64]).collect();
    let directory = store.join("local/trimmed");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("content"), &content).unwrap();
    let name = "0000000000000400-0000000000000800";
    let sum = "mv content \"$1-$(sha1sum < content | cut -d' ' -f1).raw\"";
    shell::bash(&directory, sum, &[name]).ok();
    let specs = store.join("specs.yaml");
    fs::write(&specs, TRIMMED).unwrap();
    journals(up, &["apply", "--specs", specs.to_str().unwrap()])
}

#[test]
fn offsets_below_the_first_are_gone_and_never_zeros() {
    let store = tests::ground::folder("store-");
    let root = store.path().to_str().unwrap();
    let up = Up::with(&["--file-root", root]);
    let second = up.second();
    trimmed(&up, store.path()).ok();
    let kept: Vec<u8> = (b'a'..=b'p').flat_map(|letter| [letter; 64]).collect();
    for file in [up.file("trimmed"), second.file("trimmed")] {
        tests::patience::until("the store is listed", || {
            shell::bash(Path::new("/"), "stat -c %s \"$1\"", &[file.to_str().unwrap()]).text()
                == "2048"
        });
        let read = |line: &str| shell::bash(Path::new("/"), line, &[file.to_str().unwrap()]);
        // Case: from the start, within what is gone, and from the first offset on.
        for line in ["cat \"$1\"", "dd if=\"$1\" bs=1 skip=1000 count=10 status=none"] {
            let ran = read(line);
            assert_eq!(ran.code, Some(1), "{line}: {} bytes", ran.stdout.len());
            assert!(ran.stderr.contains("No data available"), "{line}: {}", ran.stderr);
            assert!(ran.stdout.is_empty(), "{line}");
        }
        assert_eq!(read("tail -c +1025 \"$1\"").ok().stdout, kept);
        assert_eq!(read("getfattr --only-values -n user.courant.first \"$1\"").ok().text(), "1024");
    }
}

#[test]
fn garbage_on_the_port_harms_nobody() {
    let mut up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let noise: Vec<u8> =
        (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let cases: [&[u8]; 8] = [
        b"",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PUT /local/log HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        b"PUT /local/log HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nlost\r\n",
        &[preface.as_slice(), &noise].concat(),
        &noise,
    ];
    for (case, bytes) in cases.into_iter().enumerate() {
        let mut stream = TcpStream::connect(up.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // It may hang up before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
        assert!(up.daemon().lives(), "case {case}");
    }
    // Case: HTTP/2 to a service that is none, and a message that is none.
    let url = format!("{}/protocol.Journal/Append", up.url());
    let grpc =
        ["--http2-prior-knowledge", "-H", "content-type: application/grpc", "-H", "te: trailers"];
    for body in ["\u{1}garbage", ""] {
        let mut arguments = grpc.to_vec();
        arguments.extend(["--data-binary", body, &url]);
        status(&arguments);
    }
    up.bash("echo more >> log", &[]).ok();
    assert_eq!(cat(&up.file("log")), b"kept\nmore\n");
    assert_eq!(status(&[&up.journal_url("log")]), "206");
}
