//! Fragment names: what an object of a store is called, and what its name says (gazette-spec 3.1).
//!
//! An object's path below its store is `JOURNAL/POSTFIX/NAME`. Where journals nest (`a/b` beside
//! `a/b/c`), a fragment of the inner one reads as a fragment of the outer one with postfix `c`: no
//! name can tell them apart (gazette-spec 3.3), so nested journals are refused at creation.

use protocol::label::check_path;
use protocol::{Codec, Fragment, Invalid, Journal, Offset, Span, Sum};

/// The longest postfix between a journal and its fragment names, in bytes (gazette-spec 1.4).
const POSTFIX_LEN_MAX: usize = 512;

/// What the path of a stored fragment says, below its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub span: Span,
    pub sum: Sum,
    pub codec: Codec,
    /// The directories before the name; often empty.
    pub path_postfix: String,
}

/// Extensions that mean `codec`, with their dot; the first one is written, all are read.
pub const fn extensions(codec: Codec) -> &'static [&'static str] {
    match codec {
        Codec::None => &[".raw"],
        Codec::Gzip => &[".gz", ".gzip"],
        Codec::Zstandard => &[".zst", ".zstandard"],
        Codec::Snappy => &[".sz", ".snappy"],
        Codec::GzipOffload => &["", ".gzod"],
    }
}

/// The name that a fragment's content has in every store: span, sum and codec.
pub fn content_name(fragment: &Fragment) -> String {
    stem(fragment) + extensions(fragment.codec)[0]
}

/// The path below the store's prefix where the fragment is put: journal, postfix and name.
pub fn path(fragment: &Fragment) -> String {
    paths(fragment).next().expect("every codec has an extension")
}

/// The paths below the store's prefix where the fragment may lie, that where it is put first.
pub fn paths(fragment: &Fragment) -> impl Iterator<Item = String> {
    let mut dir = format!("{}/", fragment.journal);
    if !fragment.path_postfix.is_empty() {
        dir = dir + &fragment.path_postfix + "/";
    }
    let path = dir + &stem(fragment);
    extensions(fragment.codec).iter().map(move |extension| format!("{path}{extension}"))
}

fn stem(fragment: &Fragment) -> String {
    let (begin, end) = (fragment.span.begin().get(), fragment.span.end().get());
    format!("{begin:016x}-{end:016x}-{}", fragment.sum)
}

/// Reads `POSTFIX/NAME`, the part of a fragment's path below its journal.
///
/// Offsets need no zero padding, and extensions may be of either case.
pub fn parse(path: &str) -> Result<Named, Invalid> {
    let (path_postfix, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !path_postfix.is_empty() {
        check_path(path_postfix, 1, POSTFIX_LEN_MAX)
            .map_err(|error| error.within("PathPostfix"))?;
    }
    let (stem, extension) = name.split_at(name.rfind('.').unwrap_or(name.len()));
    let codec = codec_of(extension)?;
    let fields: Vec<&str> = stem.split('-').collect();
    let [begin, end, sum] = fields[..] else {
        return Err(Invalid::new(format!("wrong name ({name}; expected BEGIN-END-SHA1)")));
    };
    let span = Span::new(offset(begin)?, offset(end)?)?;
    let sum = Sum::from_hex(sum)?;
    Ok(Named { span, sum, codec, path_postfix: path_postfix.to_owned() })
}

fn codec_of(extension: &str) -> Result<Codec, Invalid> {
    Codec::ALL
        .into_iter()
        .find(|codec| extensions(*codec).iter().any(|known| known.eq_ignore_ascii_case(extension)))
        .ok_or_else(|| Invalid::new(format!("unknown extension ({extension})")))
}

fn offset(hex: &str) -> Result<Offset, Invalid> {
    let bad = || Invalid::new(format!("invalid Offset ({hex}; expected hex digits below 2^63)"));
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(bad());
    }
    i64::from_str_radix(hex, 16).map_err(|_| bad()).and_then(Offset::new)
}

impl Named {
    /// The fragment of `journal` that was found under this name in a store.
    pub fn into_fragment(self, journal: Journal, backing_store: String, mod_time: i64) -> Fragment {
        let Named { span, sum, codec, path_postfix } = self;
        Fragment { journal, span, sum, codec, backing_store, mod_time, path_postfix }
    }
}

#[cfg(test)]
mod tests;
