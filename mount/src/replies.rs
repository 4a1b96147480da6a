//! How an answer becomes a reply: for each kind of reply, what `Answers` calls with the outcome.

use crate::convert::{TTL, attr, entry, errno};
use fs::{Attr, Entry, Error};
use fuser::{Generation, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr};

/// That of a found node.
pub fn generation(found: &Entry) -> Generation {
    Generation(found.generation)
}

/// Answers that are nothing but success.
pub fn empty(reply: ReplyEmpty) -> impl FnOnce(Result<(), Error>) + Send + 'static {
    move |answer| match answer {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

pub fn found(reply: ReplyEntry) -> impl FnOnce(Result<Entry, Error>) + Send + 'static {
    move |answer| match answer {
        Ok(found) => reply.entry(&TTL, &entry(&found), generation(&found)),
        Err(error) => reply.error(errno(&error)),
    }
}

pub fn attributes(reply: ReplyAttr) -> impl FnOnce(Result<Attr, Error>) + Send + 'static {
    move |answer| match answer {
        Ok(found) => reply.attr(&TTL, &attr(&found)),
        Err(error) => reply.error(errno(&error)),
    }
}

/// The two ways in which an extended attribute is asked for: its size, or its value.
pub fn valued(
    size: u32,
    reply: ReplyXattr,
) -> impl FnOnce(Result<Vec<u8>, Error>) + Send + 'static {
    move |answer| match answer {
        Ok(value) => match u32::try_from(value.len()) {
            Ok(len) if size == 0 => reply.size(len),
            Ok(len) if len <= size => reply.data(&value),
            _ => reply.error(errno(&Error::DoesNotFit)),
        },
        Err(error) => reply.error(errno(&error)),
    }
}
