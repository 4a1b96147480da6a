//! The text of a spec while it is written through one open file.

use crate::Error;
use crate::limits::SPEC_LEN_MAX;
use bytes::Bytes;
use protocol::request::{Change, Expect};

/// What an open file holds of a spec: as it was at the open, with what was written since.
#[derive(Debug, Default)]
pub(crate) struct SpecText {
    text: Vec<u8>,
    /// Whether it was written since it was applied last.
    is_changed: bool,
    /// What the text expected that was applied last, and the revision which that made.
    applied: Option<(Expect, i64)>,
}

impl SpecText {
    pub(crate) fn new(text: Vec<u8>) -> Self {
        SpecText { text, ..SpecText::default() }
    }

    /// Writes as to a file: at an offset, or at the end.
    pub(crate) fn write(&mut self, at: Option<u64>, content: &[u8]) -> Result<usize, Error> {
        let at = at.unwrap_or(self.text.len() as u64);
        let begin = within(at)?;
        let end = within(at.saturating_add(content.len() as u64))?;
        if begin > self.text.len() {
            return Err(Error::BeyondHead { offset: at });
        }
        self.text.resize(self.text.len().max(end), 0);
        self.text[begin..end].copy_from_slice(content);
        self.is_changed = true;
        Ok(content.len())
    }

    /// Cuts it, or fills it up with blanks, which mean nothing at the end of a text.
    pub(crate) fn resize(&mut self, len: u64) -> Result<(), Error> {
        self.text.resize(within(len)?, b'\n');
        self.is_changed = true;
        Ok(())
    }

    pub(crate) fn read(&self, offset: u64, size: usize) -> Bytes {
        crate::read::cut(&Bytes::copy_from_slice(&self.text), offset, size)
    }

    /// What is to be applied. A blank text is none: a shell closes the file that it has just opened
    /// for a program, and that close is told apart from the program's by nothing else.
    pub(crate) fn unapplied(&self) -> Option<&[u8]> {
        let is_blank = self.text.iter().all(u8::is_ascii_whitespace);
        (self.is_changed && !is_blank).then_some(&self.text)
    }

    /// The change with what it expects since this open file changed the spec itself: its text has
    /// the revision from before.
    pub(crate) fn following(&self, change: Change) -> Change {
        match (change, self.applied) {
            (Change::Upsert { spec, expect }, Some((before, made))) if expect == before => {
                Change::Upsert { spec, expect: Expect::At(made) }
            }
            (change, _) => change,
        }
    }

    /// It was applied at this revision; `expected` is what its text says.
    pub(crate) fn applied(&mut self, expected: Expect, revision: i64) {
        self.is_changed = false;
        self.applied = Some((expected, revision));
    }
}

/// An offset within the longest text.
fn within(at: u64) -> Result<usize, Error> {
    let max = SPEC_LEN_MAX;
    usize::try_from(at).ok().filter(|at| *at <= max).ok_or(Error::TooLong { max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn it_is_written_as_a_file_is() {
        let mut text = SpecText::new(b"name: x\n".to_vec());
        assert_eq!(text.unapplied(), None, "nothing was written yet");
        text.write(Some(6), b"abc\n").unwrap();
        text.write(None, b"end\n").unwrap();
        assert_eq!(text.unapplied(), Some(&b"name: abc\nend\n"[..]));
        text.resize(10).unwrap();
        assert_eq!(text.read(6, 100), &b"abc\n"[..]);
        assert_eq!(text.read(100, 1), &b""[..]);
        // Case: what the file can't be
        let beyond = text.write(Some(11), b"x").unwrap_err();
        assert_eq!(beyond.errno(), Errno::INVAL);
        let long = text.write(Some(SPEC_LEN_MAX as u64), b"x").unwrap_err();
        assert_eq!(long.errno(), Errno::FBIG);
        assert_eq!(text.resize(u64::MAX).unwrap_err().errno(), Errno::FBIG);
    }

    #[test]
    fn a_blank_text_is_not_applied() {
        let mut text = SpecText::new(b"name: x\n".to_vec());
        text.resize(0).unwrap();
        assert_eq!(text.unapplied(), None);
        text.write(None, b" \n").unwrap();
        assert_eq!(text.unapplied(), None);
    }

    #[test]
    fn what_it_changed_itself_is_expected() {
        let delete = |expect| Change::Delete { journal: "a/log".parse().unwrap(), expect };
        let mut text = SpecText::new(b"name: x\n".to_vec());
        text.write(None, b"x").unwrap();
        text.applied(Expect::At(3), 7);
        assert_eq!(text.unapplied(), None);
        // Case: only replacing is followed.
        assert_eq!(text.following(delete(Expect::At(3))), delete(Expect::At(3)));
    }
}
