//! `courant journals edit`: specs in an editor, applied when it ends.

use super::apply::{apply, batches};
use crate::selection::Selection;
use crate::{Error, output, random};
use client::{Remote, specs};
use protocol::request::Change;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXAMPLES: &str = "\
Examples:
  courant journals edit local/log
  EDITOR=nano courant journals edit -l 'name:prefix=local/app/'

A journal that is taken out of the text stays as it is; one with `delete: true` is deleted. Nothing
is applied when the text is left as it was, or the editor fails. What is wrong is told in the text,
which is then opened again.";

/// The variables that name an editor, and the editor where none does.
const VARIABLES: [&str; 2] = ["GAZ_EDITOR", "EDITOR"];
const EDITOR: &str = "vi";

/// How often a text is opened that stays wrong: an editor may be a script.
const EDITS_MAX: usize = 20;

/// What lines begin with that say what is wrong.
const COMPLAINT: &str = "# wrong: ";

/// Edit specs of journals in an editor ($GAZ_EDITOR, $EDITOR, vi), and apply them.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Edit {
    #[command(flatten)]
    selection: Selection,

    /// The most journals of one transaction, which is made whole or not at all; 0 puts all in one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_txn_size: usize,
}

impl Edit {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let listed = self.selection.listed(remote).await?;
        let draft = Draft::new(&specs::to_yaml(listed)?)?;
        let mut before = draft.read()?;
        for _ in 0..EDITS_MAX {
            let edited = draft.edit()?;
            let text = draft.read()?;
            if !edited {
                return Err(draft.give_up(&text, &before));
            }
            // An editor that writes the same again, as a script does, has taken the complaint out.
            if without_complaints(&text) == without_complaints(&before) {
                return draft.leave(&before);
            }
            match self.apply(remote, &text).await {
                Ok(told) => {
                    draft.remove();
                    if told.is_empty() {
                        output::note("the text names no journal: nothing was applied");
                    }
                    return output::print(&told);
                }
                Err(error) => before = draft.complain(&text, &crate::error::line(&error))?,
            }
        }
        Err(Error::EditedTooOften(draft.0.display().to_string(), EDITS_MAX))
    }

    /// Applies what a text says; what was done.
    async fn apply(&self, remote: &Remote, text: &str) -> Result<String, Error> {
        let changes: Vec<Change> = specs::changes("the text", text)?;
        let mut told = String::new();
        for batch in batches(changes, self.max_txn_size) {
            told += &apply(remote, batch).await?;
        }
        Ok(told)
    }
}

/// The file that is edited.
struct Draft(PathBuf);

impl Draft {
    /// A file that only its owner reads, as specs may name buckets and keys.
    fn new(text: &str) -> Result<Self, Error> {
        let name = format!("courant-journals-{:016x}.yaml", random::number()?);
        let path = std::env::temp_dir().join(name);
        let attempt = format!("write {}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(Error::io(attempt))?;
        Ok(Draft(path))
    }

    fn read(&self) -> Result<String, Error> {
        let attempt = format!("read {}", self.0.display());
        std::fs::read_to_string(&self.0).map_err(Error::io(attempt))
    }

    /// Runs the editor to its end. False where it failed, which means that nothing shall be done.
    fn edit(&self) -> Result<bool, Error> {
        let editor = editor();
        let attempt = format!("run the editor {}", editor.display());
        // As git does: an editor may be a command with arguments.
        let script = format!("{} \"$1\"", editor.display());
        let status = Command::new("sh").arg("-c").arg(script).arg("sh").arg(&self.0).status();
        Ok(status.map_err(Error::io(attempt))?.success())
    }

    /// Ends after an editor that failed. A text that somebody worked on stays.
    fn give_up(self, text: &str, before: &str) -> Error {
        if text == before && !text.starts_with(COMPLAINT) {
            self.remove();
            return Error::NoEditor(editor().display().to_string());
        }
        Error::Editor(self.0.display().to_string())
    }

    /// Puts what is wrong on top of the text; the text as it is then.
    fn complain(&self, text: &str, wrong: &str) -> Result<String, Error> {
        let text = format!("{COMPLAINT}{wrong}\n{}", without_complaints(text));
        let attempt = format!("write {}", self.0.display());
        std::fs::write(&self.0, &text).map_err(Error::io(attempt))?;
        Ok(text)
    }

    /// Ends without a change. A text that somebody worked on stays.
    fn leave(self, text: &str) -> Result<(), Error> {
        match text.strip_prefix(COMPLAINT) {
            Some(rest) => {
                let wrong = rest.lines().next().unwrap_or_default().to_owned();
                Err(Error::NotApplied(self.0.display().to_string(), wrong))
            }
            None => {
                self.remove();
                output::note("nothing was changed");
                Ok(())
            }
        }
    }

    fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            let path: &Path = &self.0;
            tracing::warn!(path = %path.display(), %error, "the edited text stays");
        }
    }
}

fn without_complaints(text: &str) -> String {
    let kept = text.lines().filter(|line| !line.starts_with(COMPLAINT));
    kept.map(|line| format!("{line}\n")).collect()
}

fn editor() -> OsString {
    let named = VARIABLES.iter().filter_map(std::env::var_os).find(|name| !name.is_empty());
    named.unwrap_or_else(|| EDITOR.into())
}
