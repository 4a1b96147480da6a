//! Many journals as one stream, for ever: whole appends, as they are made.

use super::sink::Sink;
use super::{Reading, is_held};
use crate::{Error, output};
use client::{Piece, Reader, Snapshots};
use protocol::response::ListResponse;
use protocol::{Journal, Offset, Selector};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Pieces that wait to be written.
const PIECES_MAX: usize = 4;

/// How long a broker may be away before a reader that waits for more gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// What comes of a journal.
struct Event {
    journal: Journal,
    /// `None` at its end, which a blocking read comes to with an error only.
    next: Result<Option<Piece>, client::Error>,
    position: Option<Offset>,
}

/// The readers of all journals. They end with it.
struct Readers<'r> {
    reading: &'r Reading,
    tasks: JoinSet<()>,
    journals: BTreeSet<Journal>,
    /// The one whose turn it is to hand over what is no whole append yet.
    turn: Arc<Semaphore>,
    events: mpsc::Sender<Event>,
}

/// Writes whatever comes from any of the journals. With a selector it goes on when a journal is
/// deleted, and with those that come to match.
pub async fn follow(
    reading: &Reading,
    sink: &mut Sink,
    journals: Vec<Journal>,
    selector: Option<&Selector>,
) -> Result<(), Error> {
    let (sender, mut events) = mpsc::channel(PIECES_MAX);
    let mut readers = Readers {
        reading,
        tasks: JoinSet::new(),
        journals: BTreeSet::new(),
        turn: Arc::new(Semaphore::new(1)),
        events: sender,
    };
    for journal in journals {
        let from = sink.offset(&journal);
        readers.start(journal, reading, from);
    }
    let mut lists = readers.watch(selector.cloned());
    let mut closed = pin!(sink.closed());
    loop {
        tokio::select! {
            biased;
            // Without a selector the queue is closed, and this branch is none.
            Some(list) = lists.recv() => readers.follow_list(list?, sink),
            Some(event) = events.recv() => readers.take(event, sink, selector.is_some())?,
            () = &mut closed => return Err(Error::OutputClosed),
        }
    }
}

impl Readers<'_> {
    fn start(&mut self, journal: Journal, reading: &Reading, from: Option<Offset>) {
        if !self.journals.insert(journal.clone()) {
            return;
        }
        let reader = reading.reader(&journal, from).patient_for(PATIENCE);
        self.tasks.spawn(hand_over(journal, reader, self.turn.clone(), self.events.clone()));
    }

    /// The lists of what matches; a queue that is closed where nothing is watched.
    fn watch(
        &mut self,
        selector: Option<Selector>,
    ) -> mpsc::Receiver<Result<ListResponse, client::Error>> {
        let (sender, lists) = mpsc::channel(1);
        if let Some(selector) = selector {
            let Reading { remote, seed, .. } = self.reading;
            let mut snapshots = Snapshots::new(remote.clone(), selector, *seed);
            self.tasks.spawn(async move {
                loop {
                    let list = snapshots.next().await;
                    let is_last = list.is_err();
                    if sender.send(list).await.is_err() || is_last {
                        return;
                    }
                }
            });
        }
        lists
    }

    /// Begins with journals that are new: at their first byte, unless a file or a time says where.
    fn follow_list(&mut self, list: ListResponse, sink: &Sink) {
        for listed in list.journals.iter().filter(|listed| is_held(listed)) {
            let journal = listed.spec.name.clone();
            let from = sink.offset(&journal).or_else(|| self.reading.start_of_new());
            self.start(journal, self.reading, from);
        }
    }

    fn take(&mut self, event: Event, sink: &mut Sink, may_end: bool) -> Result<(), Error> {
        let Event { journal, next, position } = event;
        match next {
            Ok(Some(piece)) => {
                sink.take(&journal, piece, position)?;
                sink.flush()
            }
            Ok(None) => Ok(()),
            Err(client::Error::NotFound(_) | client::Error::Deleted(_)) if may_end => {
                output::note(&format!("{journal}: deleted, and read no more"));
                self.journals.remove(&journal);
                sink.forget(&journal);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Reading {
    /// Where a journal begins that was not there at the start. What was appended to it since is
    /// not old, whatever `--tail` said of the others.
    fn start_of_new(&self) -> Option<Offset> {
        matches!(self.start, super::Start::Head | super::Start::At(_)).then_some(Offset::ZERO)
    }
}

/// Hands over what a reader reads. Pieces of one append come in a row: others wait for their turn.
async fn hand_over(
    journal: Journal,
    mut reader: Reader,
    turn: Arc<Semaphore>,
    events: mpsc::Sender<Event>,
) {
    let mut held = None;
    loop {
        let next = reader.next().await;
        let is_last = !matches!(next, Ok(Some(_)));
        if held.is_none() {
            held = Some(turn.clone().acquire_owned().await.expect("it is never closed"));
        }
        let event = Event { journal: journal.clone(), next, position: reader.position() };
        if events.send(event).await.is_err() || is_last {
            return;
        }
        if reader.is_whole() {
            held = None;
        }
    }
}
