//! The messages of a session, made when the connection takes them: what came until then goes
//! together.

use super::Shared;
use bytes::Bytes;
use futures::Stream;
use protocol::wire::courant::AppendsRequest;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// See the module. It ends when another connection begins.
pub(super) struct Outgoing {
    shared: Arc<Shared>,
    connection: u64,
    is_begun: bool,
}

impl Outgoing {
    pub fn new(shared: Arc<Shared>, connection: u64) -> Self {
        Outgoing { shared, connection, is_begun: false }
    }
}

impl Stream for Outgoing {
    type Item = AppendsRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AppendsRequest>> {
        let outgoing = &mut *self;
        let mut lanes = outgoing.shared.lanes();
        if ready!(lanes.poll_ready(outgoing.connection, cx)).is_none() {
            return Poll::Ready(None);
        }
        let mut message = lanes.next_message();
        if !std::mem::replace(&mut outgoing.is_begun, true) {
            message.writer_id = Bytes::copy_from_slice(&outgoing.shared.id);
        }
        Poll::Ready(Some(message))
    }
}
