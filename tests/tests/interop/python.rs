//! The client's Python, with the packages it wants: made once, and kept in the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tests::shell::{self, Ran};

/// Packages come over the network the first time.
const INSTALL_LIMIT: Duration = Duration::from_secs(300);
const CLIENT_LIMIT: Duration = Duration::from_secs(120);

/// The interpreter of an environment that has what requirements.txt says.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(environment);

/// One test at a time makes the environment.
static MAKING: Mutex<()> = Mutex::new(());

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// Runs the client to its end; the last line it prints.
#[track_caller]
pub fn client(arguments: &[&str]) -> String {
    let python = {
        let _making = MAKING.lock().unwrap();
        PYTHON.clone()
    };
    let mut command = Command::new(python);
    // The folder of the sources stays as it is.
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(home().join("client.py")).args(arguments);
    let ran = shell::run(&mut command, CLIENT_LIMIT).ok();
    say(&ran.text());
    ran.text().lines().last().unwrap_or_default().to_owned()
}

#[expect(clippy::print_stdout, reason = "the client's own summary belongs to the test's output")]
fn say(text: &str) {
    println!("{text}");
}

fn environment() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME or XDG_CACHE_HOME is set"))
            .join(".cache")
    });
    let wanted = fs::read_to_string(home().join("requirements.txt")).unwrap();
    let place = cache.join("courant/interop-client");
    let (python, stamp) = (place.join("bin/python"), place.join("requirements.txt"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && python.exists() {
        return python;
    }
    fs::create_dir_all(&place).expect("the cache folder takes files");
    let make = ["-m", "venv", "--clear", place.to_str().unwrap()];
    let made = shell::run(Command::new("python3").args(make), INSTALL_LIMIT);
    made_or("python3 can't make an environment (Debian: apt-get install python3-venv)", &made);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    let installed = shell::run(install.arg(home().join("requirements.txt")), INSTALL_LIMIT);
    made_or("pip can't install what tests/interop/requirements.txt names", &installed);
    fs::write(stamp, wanted).unwrap();
    python
}

fn made_or(what: &str, ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{what}; it said: {}{}", ran.text(), ran.stderr);
}
