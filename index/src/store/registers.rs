//! A journal's registers, kept beside the content of its fragments: with the bucket alone, its
//! registers are those of its last fragment.

use super::error::{Doing, StoreError};
use super::{Store, failure};
use crate::name;
use object_store::{Attribute, Attributes, GetOptions};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use protocol::{Fragment, LabelSet};

/// The name of the object's metadata. Azure wants an identifier.
const NAME: &str = "registers";

/// S3 keeps 2 KiB of metadata with an object. Longer registers stay out of it.
const LEN_MAX: usize = 1536;

/// Headers are ASCII, and `&` and `=` are ours.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'/');

/// Adds the registers to what an object is put with; none, or too long ones, add nothing.
pub(super) fn note(registers: &LabelSet, attributes: &mut Attributes) {
    let text = encode(registers);
    if text.len() > LEN_MAX {
        tracing::debug!(len = text.len(), "registers are too long to be kept with a fragment");
    } else if !text.is_empty() {
        attributes.insert(Attribute::Metadata(NAME.into()), text.into());
    }
}

fn encode(registers: &LabelSet) -> String {
    let mut text = String::new();
    for label in registers.labels() {
        if !text.is_empty() {
            text.push('&');
        }
        text.extend(utf8_percent_encode(&label.name, ESCAPED));
        text.push('=');
        text.extend(utf8_percent_encode(&label.value, ESCAPED));
    }
    text
}

/// Anything that was not encoded here reads as no registers: others may use the name.
fn decode(text: &str) -> LabelSet {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().ok().map(String::from);
    let add = |registers: LabelSet, pair: &str| {
        let (name, value) = pair.split_once('=')?;
        registers.with(&decoded(name)?, &decoded(value)?).ok()
    };
    text.split('&').try_fold(LabelSet::default(), add).unwrap_or_default()
}

impl Store {
    /// The registers that a stored fragment was put with: none where its store keeps no metadata,
    /// where it was put by another, or where it is gone.
    pub async fn registers(&self, fragment: &Fragment) -> Result<LabelSet, StoreError> {
        for path in name::paths(fragment) {
            let key = self.key_of(&self.key_text(&path))?;
            match self.objects.get_opts(&key, GetOptions::new().with_head(true)).await {
                Ok(object) => {
                    let noted = object.attributes.get(&Attribute::Metadata(NAME.into()));
                    return Ok(noted.map(|text| decode(text.as_ref())).unwrap_or_default());
                }
                Err(error) if failure::is_missing_object(&error) => {}
                Err(error) => return Err(self.failed(Doing::Read, key.as_ref(), error)),
            }
        }
        Ok(LabelSet::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> LabelSet {
        let add = |set: LabelSet, (name, value): &(&str, &str)| set.with(name, value).unwrap();
        pairs.iter().fold(LabelSet::default(), add)
    }

    #[test]
    fn registers_are_read_as_they_were_noted() {
        // Case: registers, their text
        let cases = [
            (set(&[]), ""),
            (set(&[("author", "abc")]), "author=abc"),
            (set(&[("aa", "x/y-z"), ("bb", "")]), "aa=x/y-z&bb="),
            (set(&[("aa", "1"), ("aa", "2=%+")]), "aa=1&aa=2%3D%25%2B"),
        ];
        for (registers, text) in cases {
            assert_eq!(encode(&registers), text);
            assert_eq!(decode(text), registers, "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_registers() {
        for text in ["x", "aa=1&", "=1", "aa=%ff", "a b=1"] {
            assert_eq!(decode(text), LabelSet::default(), "{text}");
        }
    }

    #[test]
    fn long_registers_are_not_noted() {
        let mut attributes = Attributes::new();
        let long = "x".repeat(LEN_MAX / 2);
        note(&set(&[("aa", &long), ("bb", &long)]), &mut attributes);
        assert!(attributes.is_empty());
        note(&set(&[("aa", "x")]), &mut attributes);
        assert_eq!(attributes.len(), 1);
    }
}
