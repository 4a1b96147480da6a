//! Profiles of the AWS tools: keys and a region by name, in two files of the user.

use super::Surroundings;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// What a profile says. Everything may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Profile {
    values: BTreeMap<String, String>,
}

/// Ways to credentials that a profile may name, and that are not walked here.
const NOT_TAKEN: [&str; 4] =
    ["credential_process", "sso_session", "sso_start_url", "source_profile"];

impl Profile {
    /// The profile `name`: what the file of credentials says, and then that of settings. One that
    /// was `asked` for by name must be there.
    pub fn read(name: &str, is_asked: bool, around: &Surroundings) -> Result<Self, String> {
        let credentials = text_of("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", around)?;
        let settings = text_of("AWS_CONFIG_FILE", ".aws/config", around)?;
        let section = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let found = [section_of(&settings, &section), section_of(&credentials, name)];
        if is_asked && found.iter().all(Option::is_none) {
            return Err(format!("there is no profile {name} in the shared files of credentials"));
        }
        let values = found.into_iter().flatten().flatten().collect();
        let profile = Profile { values };
        profile.check(name, is_asked)
    }

    fn check(self, name: &str, is_asked: bool) -> Result<Self, String> {
        let has_keys = self.get("aws_access_key_id").is_some();
        let other = NOT_TAKEN.iter().find(|key| self.get(key).is_some());
        match other {
            Some(key) if is_asked && !has_keys => Err(format!(
                "profile {name} names its credentials by {key}, which is not supported: \
                 give it keys, or export them into the environment"
            )),
            Some(_) | None => Ok(self),
        }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// The text of the file that `variable` names, or of that below the user's home. One that is not
/// there is empty.
fn text_of(variable: &str, below_home: &str, around: &Surroundings) -> Result<String, String> {
    let named = around.get(variable).map(PathBuf::from);
    let Some(path) = named.or_else(|| around.below_home(below_home)) else {
        return Ok(String::new());
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{} can't be read: {error}", path.display())),
    }
}

/// The `key = value` lines of a section, with keys in lower case; `None` where there is none of
/// that name. Indented lines belong to the value before them, which is never one of ours.
fn section_of(text: &str, name: &str) -> Option<Vec<(String, String)>> {
    let mut found: Option<Vec<(String, String)>> = None;
    let mut is_within = false;
    for line in text.lines() {
        let line = line.split([';', '#']).next().unwrap_or_default();
        if let Some(section) = line.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']').split_whitespace();
            is_within = section.eq(name.split_whitespace());
            if is_within {
                found.get_or_insert_default();
            }
        } else if let (true, Some((key, value))) = (is_within, line.split_once('='))
            && !line.starts_with(char::is_whitespace)
        {
            let pair = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
            found.get_or_insert_default().push(pair);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
[default]
aws_access_key_id = D
aws_secret_access_key=d/+=

[ other ]
  # a comment
AWS_Access_Key_Id = O ; and one more
s3 =
    region = nested
[sso]
";
    const SETTINGS: &str = "\
[default]
region = eu-west-1
[profile other]
region = us-east-2
[profile sso]
sso_session = corp
";

    fn read(name: &str, is_asked: bool) -> Result<Profile, String> {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let around = Surroundings::from_iter([
            ("AWS_SHARED_CREDENTIALS_FILE".to_owned(), write("credentials", CREDENTIALS)),
            ("AWS_CONFIG_FILE".to_owned(), write("config", SETTINGS)),
        ]);
        Profile::read(name, is_asked, &around)
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let default = read("default", false).unwrap();
        assert_eq!(default.get("aws_access_key_id"), Some("D"));
        assert_eq!(default.get("aws_secret_access_key"), Some("d/+="));
        assert_eq!(default.get("region"), Some("eu-west-1"));
        let other = read("other", true).unwrap();
        assert_eq!(other.get("aws_access_key_id"), Some("O"));
        assert_eq!(other.get("region"), Some("us-east-2"));
        assert_eq!(other.get("aws_secret_access_key"), None);
    }

    #[test]
    fn what_can_not_be_used_is_named() {
        assert!(read("none", true).unwrap_err().contains("no profile none"));
        assert!(read("sso", true).unwrap_err().contains("by sso_session"));
        // Case: nobody asked for it.
        assert_eq!(read("none", false), Ok(Profile::default()));
        assert!(read("sso", false).is_ok());
    }

    #[test]
    fn without_files_and_a_home_there_is_nothing() {
        let around = Surroundings::default();
        assert_eq!(Profile::read("default", false, &around), Ok(Profile::default()));
    }
}
