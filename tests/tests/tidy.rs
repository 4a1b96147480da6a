//! The tree's own rules, kept by a machine: which crate may see which, one home for each heavy
//! guest, and how files look.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of ours each may use: the arrows of docs/ARCHITECTURE.md, which go down only.
const ARROWS: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("index", &["protocol"]),
    ("cluster", &["protocol"]),
    ("client", &["index", "protocol"]),
    ("broker", &["client", "cluster", "index", "protocol"]),
    ("fs", &["client", "protocol"]),
    ("mount", &["client", "fs", "protocol"]),
    ("cli", &["broker", "client", "cluster", "fs", "index", "mount", "protocol"]),
    ("tests", &["broker", "client", "cluster", "fs", "index", "mount", "protocol"]),
];

/// Where each heavy guest lives. The broker names object_store only to be handed a store.
const HOMES: &[(&str, &[&str])] = &[
    ("fuser", &["mount"]),
    ("object_store", &["index", "broker"]),
    ("redb", &["cluster"]),
    ("etcd-client", &["cluster"]),
    ("reqwest", &["client", "index"]),
    ("ring", &["client"]),
    ("serde_yaml_ng", &["client"]),
    ("tokio-rustls", &["broker"]),
    ("prometheus", &["broker"]),
    ("tonic-health", &["broker"]),
    ("tonic-reflection", &["broker"]),
    ("tonic", &["protocol", "client", "broker"]),
    ("hyper", &["broker"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("indicatif", &["cli"]),
    ("tracing-subscriber", &["cli"]),
    ("zstd", &["index"]),
    ("snap", &["index"]),
    ("flate2", &["index"]),
    ("sha1", &["index", "cluster", "broker"]),
    ("crc32c", &["index"]),
];

/// Directories that hold no text of ours: built, or data of a run.
const SKIPPED: &[&str] = &["target", ".git", "courant-data", "journals"];

/// The widest line, in characters.
const WIDTH: usize = 100;

/// One text file of the tree.
struct Page {
    /// From the root of the tree.
    path: PathBuf,
    text: String,
}

impl Page {
    fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    /// Whether it is written by hand and read by programmers: code, settings, scripts.
    fn is_code(&self) -> bool {
        let code = ["rs", "toml", "proto", "py", "sh", "service"];
        code.iter().any(|extension| self.is(extension)) || self.text.starts_with("#!")
    }

    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path.display())
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the workspace")
}

/// Every text file of the tree, by path.
fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut directories = vec![root().to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root()).unwrap().to_path_buf();
                pages.push(Page { path, text });
            }
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(pages.iter().any(|page| page.path == Path::new("tests/tests/tidy.rs")));
    pages
}

/// Fails with all that was found, a line each.
#[track_caller]
fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The names in a manifest's sections of dependencies; `for_tests`: in the others too.
fn dependencies(manifest: &str, for_tests: bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let ends = |kind: &str| section == kind || section.ends_with(&format!(".{kind}"));
            counts = ends("dependencies")
                || (for_tests && (ends("dev-dependencies") || ends("build-dependencies")));
        } else if counts && line.contains('=') && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(str::to_string));
        }
    }
    names
}

/// The crates of the tree with their manifests.
fn crates() -> BTreeMap<&'static str, String> {
    let manifest = |name| fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
    ARROWS.iter().map(|(name, _)| (*name, manifest(name))).collect()
}

#[test]
fn arrows_go_down_only() {
    let crates = crates();
    let mut found = Vec::new();
    for (name, allowed) in ARROWS {
        for used in dependencies(&crates[name], true) {
            if crates.contains_key(used.as_str()) && !allowed.contains(&used.as_str()) {
                found.push(format!("{name} must not see {used}"));
            }
        }
    }
    none(found);
}

#[test]
fn every_member_has_its_arrows() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = workspace.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: Vec<&str> = members.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let missing = members.iter().filter(|name| !name.is_empty());
    let missing = missing.filter(|name| !ARROWS.iter().any(|(known, _)| known == *name));
    none(missing.map(|name| format!("{name} is not in the table of arrows")).collect());
}

#[test]
fn heavy_guests_stay_at_home() {
    let mut found = Vec::new();
    for (name, manifest) in crates() {
        for used in dependencies(&manifest, false) {
            let home = HOMES.iter().find(|(guest, _)| *guest == used);
            // The tests may see everything.
            if home.is_some_and(|(_, homes)| name != "tests" && !homes.contains(&name)) {
                found.push(format!("{name} must not use {used}"));
            }
        }
    }
    none(found);
}

#[test]
fn versions_stand_in_one_place() {
    let mut found = Vec::new();
    for (name, manifest) in crates() {
        let own = manifest.lines().filter(|line| line.contains("version = \""));
        found.extend(own.map(|line| format!("{name}: {line}: let it come from the workspace")));
    }
    none(found);
}

#[test]
fn manifests_are_read_as_cargo_reads_them() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\n# c = 1\n\
                    b = { workspace = true }\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n\
                    [dev-dependencies]\ne.workspace = true\n[features]\nf = []\n";
    assert_eq!(dependencies(manifest, false), ["a", "b", "d"]);
    assert_eq!(dependencies(manifest, true), ["a", "b", "d", "e"]);
}

#[test]
fn every_file_says_what_it_is_for() {
    let pages = pages();
    let rust = pages.iter().filter(|page| page.is("rs"));
    let silent = rust.filter(|page| !page.text.starts_with("//! "));
    none(silent.map(|page| page.at(1, "the first line is no `//! `")).collect());
}

#[test]
fn code_is_ascii_and_fits_the_width() {
    let mut found = Vec::new();
    for page in pages().iter().filter(|page| page.is_code()) {
        for (number, line) in page.lines() {
            if !line.is_ascii() {
                found.push(page.at(number, "not ASCII"));
            }
            // Manifests are lists: one entry a line, however long.
            if line.chars().count() > WIDTH && !page.is("toml") {
                found.push(page.at(number, "too wide"));
            }
            if line.ends_with([' ', '\t', '\r']) {
                found.push(page.at(number, "white space at the end"));
            }
        }
    }
    none(found);
}

#[test]
fn every_select_is_biased() {
    let select = concat!("select", "!");
    let mut found = Vec::new();
    for page in pages().iter().filter(|page| page.is("rs")) {
        for (at, _) in page.text.match_indices(select) {
            let line_start = page.text[..at].rfind('\n').map_or(0, |before| before + 1);
            let is_comment = page.text[line_start..at].contains("//");
            let after = page.text[at + select.len()..].trim_start();
            let begins = after.strip_prefix(['{', '(']).map(str::trim_start);
            if !is_comment && begins.is_some_and(|body| !body.starts_with("biased;")) {
                let line = page.text[..at].lines().count();
                found.push(page.at(line.max(1), "a select that is not biased"));
            }
        }
    }
    none(found);
}

#[test]
fn what_is_left_to_do_has_an_issue() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let mut found = Vec::new();
    for page in pages().iter().filter(|page| page.is_code()) {
        for (number, line) in page.lines() {
            let words = line.split(|letter: char| !letter.is_alphanumeric());
            let marked = words.into_iter().any(|word| marks.contains(&word));
            let has_issue = line.split('#').skip(1).any(|rest| rest.starts_with(char::is_numeric));
            if marked && !has_issue {
                found.push(page.at(number, "something to do, without the number of an issue"));
            }
        }
    }
    none(found);
}

/// The files that are compiled for tests only: integration tests, and modules under `cfg(test)`.
fn is_for_tests(page: &Page, pages: &[Page]) -> bool {
    let path = &page.path;
    if path.starts_with("tests") || path.iter().any(|part| part == "tests" || part == "benches") {
        return true;
    }
    let declared = |module: &Path| {
        let Some(name) = module.file_stem().and_then(|stem| stem.to_str()) else { return false };
        let above = module.parent().unwrap_or(Path::new(""));
        let parents = [above.with_extension("rs"), above.join("lib.rs"), above.join("main.rs")];
        let parents = pages.iter().filter(|page| parents.contains(&page.path));
        let declaration = format!("mod {name};");
        parents.into_iter().any(|parent| {
            let mut lines = parent.text.lines().zip(parent.text.lines().skip(1));
            lines.any(|(gate, line)| {
                gate.trim() == "#[cfg(test)]" && line.trim().ends_with(&declaration)
            })
        })
    };
    path.ancestors().any(|module| declared(&module.with_extension("rs")))
}

/// The part of a file that is compiled for production: what stands before its inline tests.
fn production(page: &Page) -> &str {
    let tests = page.text.find("#[cfg(test)]\nmod tests {");
    &page.text[..tests.unwrap_or(page.text.len())]
}

#[test]
fn nothing_unwraps_outside_tests() {
    let unwrap = concat!(".unw", "rap()");
    let pages = pages();
    let mut found = Vec::new();
    for page in pages.iter().filter(|page| page.is("rs") && !is_for_tests(page, &pages)) {
        for (number, line) in (1..).zip(production(page).lines()) {
            if line.contains(unwrap) && !line.trim_start().starts_with("//") {
                found.push(page.at(number, "say with expect why it can't be"));
            }
        }
    }
    none(found);
}

#[test]
fn nothing_names_the_machine_it_was_made_on() {
    let banned = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("crates", ".io/"),
        concat!("index.", "crates.io"),
        concat!("pypi", ".org"),
        concat!("registry.", "npmjs"),
        concat!("proxy.", "golang"),
        concat!("deb.", "debian"),
    ];
    let mut found = Vec::new();
    // Cargo writes the registry's name into its lock file.
    for page in pages().iter().filter(|page| page.path != Path::new("Cargo.lock")) {
        for (number, line) in page.lines() {
            if let Some(name) = banned.iter().find(|name| line.contains(**name)) {
                found.push(page.at(number, &format!("names {name}")));
            }
        }
    }
    none(found);
}

/// The faults that the simulation must find are a patch, which has to be brought along with what it
/// changes.
#[test]
fn the_mutants_apply_to_the_tree() {
    let patch = "tests/tests/sim/mutants.patch";
    let git = std::process::Command::new("git")
        .args(["apply", "--check", patch])
        .current_dir(root())
        .output()
        .expect("git, which scripts/setup installs, runs");
    assert!(git.status.success(), "{patch}: {}", String::from_utf8_lossy(&git.stderr));
}
