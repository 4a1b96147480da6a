//! What a process finds around it: the variables and files by which clouds hand out credentials.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The environment that credentials are looked for in. Tests make their own.
#[derive(Clone, Default)]
pub struct Surroundings {
    variables: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// A variable; an empty one is as if it was not set.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of those variables that is set.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// A path below the user's home.
    pub(super) fn below_home(&self, path: &str) -> Option<PathBuf> {
        self.get("HOME").map(|home| PathBuf::from(home).join(path))
    }
}

impl FromIterator<(String, String)> for Surroundings {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Surroundings { variables: variables.into_iter().collect() }
    }
}

/// Values are often secrets: only names are shown.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
