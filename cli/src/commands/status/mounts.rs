//! The mounts of this machine, and what their daemons say of them.

use crate::table::Table;
use crate::{Error, size};
use ::mount::mountpoint::{self, table::Mount};
use serde_json::{Map, Value, json};

/// The line of `.courant/status` that names a journal which is open, and its members.
const OPEN: &str = "open";
const OPEN_MEMBERS: [&str; 4] = ["mode", "handles", "pins", "journal"];

/// The line that tells for how many seconds a broker has been away.
const AWAY: &str = "broker-away-seconds";

/// Every mount of ours that this process sees, as an array of objects. A daemon that does not
/// answer is given a few seconds.
pub fn all() -> Result<Value, Error> {
    let mounts = mountpoint::mounts()?;
    Ok(mounts.iter().map(object).collect())
}

fn object(mount: &Mount) -> Value {
    let (state, status) = match mountpoint::status(&mount.point) {
        Ok(text) => ("serving", read(&text)),
        Err(mountpoint::Error::Dead(_)) => ("dead", Value::Null),
        Err(mountpoint::Error::Silent(_)) => ("silent", Value::Null),
        Err(_) => ("unknown", Value::Null),
    };
    json!({
        "mount": mount.point.to_string_lossy(),
        "source": mount.source,
        "state": state,
        "status": status,
    })
}

/// The lines of a status as members: numbers and truths as such, journals that are open in `open`.
fn read(text: &str) -> Value {
    let mut members = Map::new();
    let mut open = Vec::new();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if name == OPEN {
            let values = value.splitn(OPEN_MEMBERS.len(), ' ').map(typed);
            open.push(OPEN_MEMBERS.into_iter().map(str::to_owned).zip(values).collect());
        } else {
            members.insert(name.to_owned(), typed(value));
        }
    }
    members.insert(OPEN.to_owned(), Value::Array(open));
    Value::Object(members)
}

fn typed(value: &str) -> Value {
    match value.parse::<u64>() {
        Ok(number) => number.into(),
        Err(_) => value.parse::<bool>().map_or_else(|_| value.into(), Value::from),
    }
}

/// For people: a line each, and then the journals that are open.
pub fn readable(mounts: &Value) -> String {
    let list = mounts.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return "nothing of courant is mounted here\n".to_owned();
    }
    let mut table =
        Table::new(["MOUNT", "SOURCE", "STATE", "#OPEN", "#PINS", "#FOLLOWERS", "#STAGED"]);
    for mount in list {
        let status = &mount["status"];
        let number = |name: &str| status[name].as_u64().map_or("-".into(), |it| it.to_string());
        table.row(vec![
            super::shown(&mount["mount"]),
            super::shown(&mount["source"]),
            state(mount),
            number("handles"),
            number("pins"),
            number("followers"),
            status["staged-bytes"].as_u64().map_or("-".to_owned(), size::format),
        ]);
    }
    format!("{table}{}", open(list))
}

/// Whether it is served, and whether there is a broker behind it.
fn state(mount: &Value) -> String {
    match &mount["status"][AWAY] {
        Value::Null => super::shown(&mount["state"]),
        seconds => format!("no broker for {}", super::age_of(seconds)),
    }
}

fn open(mounts: &[Value]) -> String {
    let mut table = Table::new(["OPEN JOURNAL", "MODE", "#HANDLES", "#PINS", "MOUNT"]);
    let mut is_empty = true;
    for mount in mounts {
        for journal in mount["status"][OPEN].as_array().map(Vec::as_slice).unwrap_or_default() {
            is_empty = false;
            let mut row: Vec<String> = ["journal", "mode", "handles", "pins"]
                .map(|member| super::shown(&journal[member]))
                .into();
            row.push(super::shown(&mount["mount"]));
            table.row(row);
        }
    }
    if is_empty { String::new() } else { format!("\n{}", table.shown()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_line_by_line() {
        let read = read(
            "prefix local/\nread-only false\nhandles 3\nfollowers 1\n\
             open passthrough 2 2 local/a b\nopen direct 1 0 local/c\n",
        );
        let expected = json!({
            "prefix": "local/", "read-only": false, "handles": 3, "followers": 1,
            "open": [
                {"mode": "passthrough", "handles": 2, "pins": 2, "journal": "local/a b"},
                {"mode": "direct", "handles": 1, "pins": 0, "journal": "local/c"},
            ],
        });
        assert_eq!(read, expected);
        let mounts = json!([
            {"mount": "/m", "source": "http://h:1", "state": "serving", "status": read},
            {"mount": "/n", "source": "courant", "state": "dead", "status": null},
            {"mount": "/o", "source": "http://h:2", "state": "serving", "status": {AWAY: 72}},
        ]);
        let text = readable(&mounts);
        for row in [
            vec!["/m", "http://h:1", "serving", "3", "-", "1", "-"],
            vec!["/n", "courant", "dead", "-", "-", "-", "-"],
            vec!["/o", "http://h:2", "no", "broker", "for", "1m12s", "-", "-", "-", "-"],
            vec!["local/c", "direct", "1", "0", "/m"],
        ] {
            let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            assert!(rows.any(|it| it == row), "nothing of {row:?} in: {text}");
        }
        assert!(super::readable(&json!([])).contains("nothing"));
    }
}
