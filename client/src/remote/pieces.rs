//! The content of an append, cut into the messages of a stream.

use crate::limits::PIECE_LEN;
use crate::{Append, Staged};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use prost::Message;
use protocol::request::AppendPart;
use protocol::wire::{courant, gazette};
use protocol::{Life, Selector};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// What is appended: content that is there, also in part in a local file, or content that comes.
///
/// Content that ends without [`AppendPart::Commit`] is rolled back.
pub(crate) enum Parts {
    Whole(Bytes),
    Staged(Bytes, Staged),
    Coming(mpsc::Receiver<AppendPart>),
}

impl Parts {
    /// The whole content of an append.
    pub fn of(append: &Append) -> Parts {
        match &append.staged {
            None => Parts::Whole(append.content.clone()),
            Some(staged) => Parts::Staged(append.content.clone(), staged.clone()),
        }
    }

    /// Bytes, as far as they are there; 0 of those that come.
    pub fn len(&self) -> u64 {
        match self {
            Parts::Whole(content) => content.len() as u64,
            Parts::Staged(content, staged) => content.len() as u64 + staged.len(),
            Parts::Coming(_) => 0,
        }
    }

    /// The parts, none of them larger than a message may be.
    fn stream(self) -> stream::BoxStream<'static, AppendPart> {
        match self {
            Parts::Whole(content) => {
                let parts = pieces(content).map(AppendPart::Content);
                stream::iter(parts.chain([AppendPart::Commit])).boxed()
            }
            Parts::Staged(content, staged) => {
                let parts = stream::iter(pieces(content)).chain(staged.readable_pieces());
                let commit = stream::once(async move {
                    // What ends too early is no append.
                    staged.failure().is_none().then_some(AppendPart::Commit)
                });
                let commit = commit.filter_map(std::future::ready);
                parts.map(AppendPart::Content).chain(commit).boxed()
            }
            Parts::Coming(parts) => ReceiverStream::new(parts)
                .flat_map(|part| match part {
                    AppendPart::Content(content) => {
                        stream::iter(pieces(content).map(AppendPart::Content)).boxed()
                    }
                    AppendPart::Commit => stream::iter([AppendPart::Commit]).boxed(),
                })
                .boxed(),
        }
    }
}

/// The messages of one append. It has a name, and no lifetime in it, since the compiler can't prove
/// `Send` of a request over an anonymous one.
pub(crate) struct Messages<T>(stream::BoxStream<'static, T>);

impl<T> Stream for Messages<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_next_unpin(cx)
    }
}

fn pieces(mut content: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let len = content.len().min(PIECE_LEN);
        (len > 0).then(|| content.split_to(len))
    })
}

/// The messages of `courant.v1`. Small content takes one message in all.
pub(crate) fn courant_messages(append: &Append, parts: Parts) -> Messages<courant::AppendRequest> {
    if let Parts::Whole(content) = &parts
        && content.len() <= PIECE_LEN
    {
        let only = courant_whole(append, content.clone());
        return Messages(stream::iter([only]).boxed());
    }
    let first = courant_first(append);
    let rest = parts.stream().map(|part| match part {
        AppendPart::Content(content) => courant::AppendRequest { content, ..Default::default() },
        AppendPart::Commit => courant::AppendRequest { commit: true, ..Default::default() },
    });
    Messages(stream::iter([first]).chain(rest).boxed())
}

/// The one message of an append whose content is short, and all there.
pub(crate) fn courant_whole(append: &Append, content: Bytes) -> courant::AppendRequest {
    courant::AppendRequest { content, commit: true, ..courant_first(append) }
}

fn courant_first(append: &Append) -> courant::AppendRequest {
    let labels = |set: &protocol::LabelSet| match set.is_empty() {
        true => Bytes::new(),
        false => set.to_bytes().into(),
    };
    let (writer_id, sequence) = match append.writer {
        Some(writer) => (Bytes::copy_from_slice(&writer.id), writer.sequence),
        None => (Bytes::new(), 0),
    };
    courant::AppendRequest {
        journal: append.journal.to_string(),
        durability: super::words::durability(append.durability).into(),
        writer_id,
        sequence,
        offset: append.offset.map(|offset| offset.get()),
        check_registers: append.check_registers.as_ref().map(encode_selector).unwrap_or_default(),
        union_registers: labels(&append.union_registers),
        subtract_registers: labels(&append.subtract_registers),
        content: Bytes::new(),
        commit: false,
        life: append.life.map_or(0, Life::get),
        rate_wait_ms: append.rate_wait.map_or(0, at_least_a_millisecond),
    }
}

/// Milliseconds of a wait, of which 0 would mean any.
pub(crate) fn at_least_a_millisecond(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1)
}

fn encode_selector(selector: &Selector) -> Bytes {
    gazette::LabelSelector::from(selector.clone()).encode_to_vec().into()
}

/// The messages of Gazette's append.
pub(crate) fn gazette_messages(append: &Append, parts: Parts) -> Messages<gazette::AppendRequest> {
    let labels = |set: &protocol::LabelSet| (!set.is_empty()).then(|| set.clone());
    let first = protocol::request::AppendRequest {
        offset: append.offset,
        check_registers: append.check_registers.clone(),
        union_registers: labels(&append.union_registers),
        subtract_registers: labels(&append.subtract_registers),
        ..protocol::request::AppendRequest::new(append.journal.clone())
    };
    gazette_request(first, parts)
}

/// The messages of an append whose first one is given.
pub(crate) fn gazette_request(
    first: protocol::request::AppendRequest,
    parts: Parts,
) -> Messages<gazette::AppendRequest> {
    let rest = parts.stream().map(gazette::AppendRequest::from);
    Messages(stream::iter([first.into()]).chain(rest).boxed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append() -> Append {
        Append::new("local/log".parse().expect("valid"), Bytes::new())
    }

    #[tokio::test]
    async fn content_is_cut_to_fit_messages() {
        // Case: bytes, messages of ours, messages of Gazette's
        let cases =
            [(0, 1, 2), (1, 1, 3), (PIECE_LEN, 1, 3), (PIECE_LEN + 1, 4, 4), (3 * PIECE_LEN, 5, 5)];
        for (len, ours, theirs) in cases {
            let content = Bytes::from(vec![7; len]);
            let messages = courant_messages(&append(), Parts::Whole(content.clone()));
            let messages: Vec<_> = messages.collect().await;
            assert_eq!(messages.len(), ours, "{len}");
            assert_eq!(messages.iter().map(|m| m.content.len()).sum::<usize>(), len);
            assert!(messages.iter().rev().skip(1).all(|m| !m.commit));
            assert!(messages.last().is_some_and(|m| m.commit));
            assert_eq!(messages[0].journal, "local/log");

            let messages = gazette_messages(&append(), Parts::Whole(content));
            let messages: Vec<_> = messages.collect().await;
            assert_eq!(messages.len(), theirs, "{len}");
            assert!(messages.last().is_some_and(|m| m.content.is_empty()));
        }
    }

    #[tokio::test]
    async fn what_stops_coming_is_not_committed() {
        let (sender, parts) = mpsc::channel(2);
        sender.try_send(AppendPart::Content(Bytes::from_static(b"abc"))).expect("room");
        drop(sender);
        let messages: Vec<_> = courant_messages(&append(), Parts::Coming(parts)).collect().await;
        assert_eq!(messages.len(), 2);
        assert!(messages.iter().all(|message| !message.commit));
    }
}
