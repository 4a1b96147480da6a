//! An append, as a walk through types: a step out of order does not compile.
//!
//! ```text
//! Resolution -> Stager -> Staged   content complete, in memory or on disk, within the limits
//!            -> Held               the journal's one writer turn, in the order of asking
//!            -> Synced             peers agree on the head; alone there are none
//!            -> Checked            offset, registers, flags, the writer's sequence
//!            -> Sent               to the peers
//!            -> Recorded           in the commit log: from here on it happens
//!            -> Committed          in the mirror, head published, as durable as was asked
//! ```
//!
//! Staging comes first, so that a slow client holds nothing but its own bytes. What is dropped
//! before `Recorded` never happened; what is dropped after it happens all the same.

mod ahead;
mod budget;
mod check;
mod pace;
mod stage;
mod suspend;

pub use budget::Budget;
pub(crate) use budget::Share;
pub(crate) use pace::Allowance;
pub(crate) use stage::Staging;
pub use stage::{Connection, Stager};

use crate::metrics::Committing;
use crate::resolve::is_suspended;
use crate::{Broker, Error, Resolution, Served};
use bytes::Bytes;
use check::Verdict;
use client::{Durability, Writer};
use index::blocking::off_thread;
use index::{Commit, Content, DataDir, Entry, Turn};
use pace::Price;
use protocol::request::{AppendRequest, AppendSuspend};
use protocol::{Codec, LabelSet, Life, Offset, Selector, Span, Sum, SuspendLevel};
use stage::Held as Room;
use std::sync::Arc;
use std::time::Duration;

/// What an append asks for, beside its content.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The life that is meant, where the caller holds a handle.
    pub life: Option<Life>,
    /// The append happens only if the journal ends here.
    pub offset: Option<Offset>,
    pub check_registers: Option<Selector>,
    pub union_registers: Option<LabelSet>,
    pub subtract_registers: Option<LabelSet>,
    pub writer: Option<Writer>,
    /// The longest that the append may wait for the journal's rate: past that it is `OverRate`.
    /// `None`: for as long as it takes, which is Gazette's flow control.
    pub rate_wait: Option<Duration>,
    pub suspend: AppendSuspend,
    /// `None`: as the broker is configured.
    pub durability: Option<Durability>,
    /// Whether the answer shall have the SHA1 of the content.
    pub needs_sum: bool,
    /// Appends of a session that come as this one: they are counted singly. 0 is 1.
    pub joined: u32,
}

impl From<AppendRequest> for Terms {
    /// Gazette's request: its answer has a sum.
    fn from(request: AppendRequest) -> Self {
        Terms {
            offset: request.offset,
            check_registers: request.check_registers,
            union_registers: request.union_registers,
            subtract_registers: request.subtract_registers,
            suspend: request.suspend,
            needs_sum: true,
            ..Terms::default()
        }
    }
}

impl Terms {
    /// Whether the append would set or clear registers.
    pub(crate) fn changes_registers(&self) -> bool {
        self.union_registers.is_some() || self.subtract_registers.is_some()
    }

    /// Whether the append is one of `reset-head`, which alone leaves a suspension as it is
    /// (gazette-spec 2.10): it is about where the stores end at this moment.
    fn is_of_reset_head(&self) -> bool {
        self.suspend == AppendSuspend::Keep
    }
}

/// What an append is about, from its begin to its end.
#[derive(Debug)]
pub(crate) struct Target {
    pub broker: Broker,
    pub served: Arc<Served>,
    pub terms: Terms,
}

impl Target {
    /// Bytes a second that the journal takes at most, if that is limited: by its spec, or by the
    /// broker for all of them.
    fn rate_max(&self) -> Option<u64> {
        let spec = u64::try_from(self.served.entry().spec.max_append_rate).unwrap_or(0);
        let rates = [spec, self.broker.shared.config.append_rate_max];
        rates.into_iter().filter(|rate| *rate > 0).min()
    }

    fn is_disk(&self) -> bool {
        let durability = self.terms.durability.unwrap_or(self.broker.shared.config.durability);
        durability == Durability::Disk
    }
}

/// Content that is complete. Nothing is decided yet.
///
/// In a box, since every step hands it on, and would move it as often.
#[derive(Debug)]
pub struct Staged(Box<Whole>);

/// An append with all that it brings.
#[derive(Debug)]
struct Whole {
    target: Box<Target>,
    content: Content,
    sum: Option<Sum>,
    /// The room that the content takes, given back when the append is over.
    room: Room,
}

/// An append whose turn it is: no other append of the journal goes on while it lives.
#[derive(Debug)]
pub struct Held {
    staged: Staged,
    turn: Turn,
}

/// An append whose replicas agree on where the journal ends.
#[derive(Debug)]
pub struct Synced {
    held: Held,
}

/// An append that may happen.
#[derive(Debug)]
pub struct Checked {
    held: Held,
    verdict: Verdict,
}

/// An append whose content the peers have.
#[derive(Debug)]
pub struct Sent {
    checked: Checked,
}

/// An append that happens, whoever still waits for it. The next one has the turn.
#[derive(Debug)]
pub struct Recorded {
    target: Box<Target>,
    sum: Option<Sum>,
    registers: LabelSet,
    outcome: Outcome,
    _room: Room,
}

#[derive(Debug)]
enum Outcome {
    New(Commit),
    /// It happened before, or there was nothing to record.
    Old(Span, bool),
}

/// An append that happened, as durable as was asked.
#[derive(Debug, Clone)]
pub struct Committed {
    pub life: Life,
    pub span: Span,
    /// The content's SHA1, if asked for. That of no bytes is the sum of the empty string.
    pub sum: Option<Sum>,
    /// The codec by which the journal's fragments are compressed.
    pub codec: Codec,
    /// The registers after the append.
    pub registers: LabelSet,
    /// The writer's sequence was there already: `span` is that of the first time.
    pub is_repeated: bool,
    pub durability: Durability,
}

impl Broker {
    /// Begins an append: resumes a suspended journal where the request says so, and refuses early
    /// what can't happen.
    ///
    /// `connection` bounds what its client may stage; see [`Broker::connection`].
    pub async fn begin_append(
        &self,
        resolution: Resolution,
        terms: Terms,
        connection: &Arc<Connection>,
    ) -> Result<Stager, Error> {
        let served = self.resumed(resolution, terms.suspend).await?;
        suspend::check(&served, &terms)?;
        if terms.is_of_reset_head() {
            Box::pin(self.list_again(&served)).await?;
        }
        let target = Box::new(Target { broker: self.clone(), served, terms });
        check::early(&target)?;
        Ok(Stager::new(target, connection))
    }

    /// Appends content that is complete and in memory. Without anything to wait for it is done at
    /// the first poll.
    pub async fn append_bytes(
        &self,
        resolution: Resolution,
        terms: Terms,
        content: Bytes,
    ) -> Result<Committed, Error> {
        self.begin_bytes(resolution, terms, content, None).await?.committed().await
    }

    /// The same, up to where the append happens: the next one of the journal may begin. `room` is
    /// what the content takes already.
    pub(crate) async fn begin_bytes(
        &self,
        resolution: Resolution,
        terms: Terms,
        content: Bytes,
        room: Option<Share>,
    ) -> Result<Underway, Error> {
        let served = self.resumed(resolution, terms.suspend).await?;
        suspend::check(&served, &terms)?;
        let target = Box::new(Target { broker: self.clone(), served, terms });
        check::early(&target)?;
        if let Some(rate) = target.rate_max()
            && !check::is_repeated(&target)
        {
            let price = Price { len: content.len() as u64, rate };
            Box::pin(price.pay(&target.served, target.terms.rate_wait)).await?;
        }
        Staged::whole(target, content, room)?.begin_commit().await
    }

    /// Room for `len` bytes that are in memory before their append begins.
    pub(crate) fn room_in_memory(&self, len: u64) -> Result<Share, Error> {
        self.shared.staging.room_in_memory(len)
    }

    /// Gives a client room for its appends. Each of its connections takes one.
    pub fn connection(&self) -> Arc<Connection> {
        self.shared.staging.connection()
    }

    /// The journal of an append. One that is suspended is resumed by an append that says so, and
    /// goes on at the offset at which it was suspended.
    async fn resumed(
        &self,
        resolution: Resolution,
        suspend: AppendSuspend,
    ) -> Result<Arc<Served>, Error> {
        match &resolution.served {
            Some(served)
                if suspend == AppendSuspend::Resume
                    && suspend::level(served) != SuspendLevel::None =>
            {
                Box::pin(self.resume_journal(served)).await?;
                self.resolve_now(&resolution.journal).served().cloned()
            }
            _ => resolution.served().cloned(),
        }
    }
}

impl Staged {
    /// Takes the journal's writer turn. Waits for the first listing of a journal without local
    /// records, since until then nobody knows where it ends.
    pub async fn hold(self) -> Result<Held, Error> {
        let served = &self.0.target.served;
        if !served.is_known() {
            Box::pin(self.0.target.broker.wait_listed(served)).await?;
        }
        let turn = async { Ok(served.replica().turn().await) };
        let turn = self.0.target.broker.shared.troubles.outlast(turn).await?;
        Ok(Held { staged: self, turn })
    }

    /// The whole rest of the way.
    pub async fn commit(self) -> Result<Committed, Error> {
        self.begin_commit().await?.committed().await
    }

    /// The way up to where the append happens.
    async fn begin_commit(self) -> Result<Underway, Error> {
        let Whole { target, content, .. } = &*self.0;
        let (served, joined) = (&target.served, target.terms.joined);
        let counted = target.broker.metrics().begin_commit(served, content.len(), joined);
        match self.record().await {
            Ok(recorded) => Ok(Underway { recorded, counted }),
            Err(error) => {
                counted.end(None);
                Err(error)
            }
        }
    }

    async fn record(self) -> Result<Recorded, Error> {
        let checked = self.hold().await?.synced().await?.check().await?;
        checked.send().await?.record().await
    }
}

impl Held {
    /// Brings the replicas to one head. Alone there is nobody to agree with, but a journal that
    /// was suspended goes on no lower than it stopped, and one that is behind its store where the
    /// append says so.
    pub async fn synced(mut self) -> Result<Synced, Error> {
        let target = &self.staged.0.target;
        let (is_behind, suspends) =
            (ahead::is_behind(target, &self.turn), target.terms.suspend.suspends());
        if is_behind || suspends {
            // What follows changes the journal, and comes before its registers are checked.
            check::registers(target, &self.turn)?;
        }
        if is_behind {
            Box::pin(ahead::follow(target, &mut self.turn)).await?;
        }
        if suspends {
            Box::pin(suspend::suspend(target, &self.turn)).await?;
        }
        Ok(Synced { held: self })
    }
}

impl Synced {
    /// Decides, by what is true under the turn. A refusal for what is recorded and not published
    /// yet is told when it is: a power cut could still take it, and then nothing refused.
    pub async fn check(self) -> Result<Checked, Error> {
        let held = self.held;
        let Whole { target, content, .. } = &*held.staged.0;
        let refused = match check::under_turn(target, &held.turn, content) {
            Ok(verdict) => return Ok(Checked { held, verdict }),
            Err(refused) => refused,
        };
        let head = held.turn.head();
        let is_ahead = head > target.served.replica().head();
        if is_ahead && refused.tells_of_journal() {
            let Held { staged, turn } = held;
            drop(turn);
            let Whole { target, .. } = &*staged.0;
            Box::pin(target.broker.published(&target.served, head, false)).await?;
        }
        Err(refused)
    }
}

impl Checked {
    /// Sends the content to the peers.
    pub async fn send(self) -> Result<Sent, Error> {
        Ok(Sent { checked: self })
    }
}

impl Sent {
    /// Writes the append into the commit log and gives the turn to the next one.
    pub async fn record(self) -> Result<Recorded, Error> {
        let Checked { held: Held { staged, turn }, verdict } = self.checked;
        let Whole { target, content, sum, room } = *staged.0;
        let (registers, outcome) = match verdict {
            Verdict::Repeated(span) => (turn.registers(), Outcome::Old(span, true)),
            Verdict::Nothing(head) => (turn.registers(), Outcome::Old(Span::at(head, 0), false)),
            Verdict::Append { registers, after } => {
                let writer = target.terms.writer.map(|writer| (writer.id, writer.sequence));
                let entry = Entry { content, registers, writer, is_disk: target.is_disk() };
                let commit = record(&target.broker.shared.data, turn, entry).await?;
                (after, Outcome::New(commit))
            }
        };
        Ok(Recorded { target, sum, registers, outcome, _room: room })
    }
}

/// Records an append: a short one on this thread, so that it may be done at the first poll.
async fn record(data: &Arc<DataDir>, mut turn: Turn, entry: Entry) -> Result<Commit, Error> {
    let content = match &entry.content {
        Content::Memory(content) => content.clone(),
        // Staged content is copied into the mirror, which takes as long as it is long.
        Content::Staged(_) => {
            let data = data.clone();
            let recorded = off_thread(move || data.prepare_log().and_then(|()| turn.record(entry)));
            return Ok(Box::pin(recorded).await?);
        }
    };
    let again = Entry {
        content: Content::Memory(content),
        registers: entry.registers.clone(),
        writer: entry.writer,
        is_disk: entry.is_disk,
    };
    match turn.record(entry) {
        // The log's next segment may not be written yet: the disk is not full before it can't be.
        Err(error) if error.is_full() => {
            let data = data.clone();
            let recorded = off_thread(move || match data.prepare_log() {
                Ok(()) => turn.record(again),
                Err(_) => Err(error),
            });
            Ok(Box::pin(recorded).await?)
        }
        recorded => Ok(recorded?),
    }
}

impl Recorded {
    /// Waits until the append is published, and durable where that was asked.
    pub async fn committed(self) -> Result<Committed, Error> {
        let target = &self.target;
        let is_disk = target.is_disk();
        let troubles = &target.broker.shared.troubles;
        let (span, is_repeated) = match self.outcome {
            Outcome::New(commit) => match troubles.outlast(commit.done()).await {
                Ok(span) => (span, false),
                Err(_) if target.served.replica().watch().borrow().is_gone => {
                    return Err(Error::Deleted(target.served.journal().clone()));
                }
                Err(error) => return Err(error),
            },
            Outcome::Old(span, is_repeated) => {
                Box::pin(target.broker.published(&target.served, span.end(), is_disk)).await?;
                (span, is_repeated)
            }
        };
        Ok(Committed {
            life: target.served.life(),
            span,
            sum: self.sum,
            codec: target.served.entry().spec.fragment.codec,
            registers: self.registers,
            is_repeated,
            durability: if is_disk { Durability::Disk } else { Durability::Memory },
        })
    }
}

/// An append that happens, and is counted when it is done.
#[derive(Debug)]
pub(crate) struct Underway {
    recorded: Recorded,
    counted: Committing,
}

impl Underway {
    /// The rest of the way.
    pub async fn committed(self) -> Result<Committed, Error> {
        let committed = self.recorded.committed().await;
        self.counted.end(committed.as_ref().ok());
        committed
    }
}

impl Broker {
    /// Waits until every byte below `below` is durable on disk, as far as there are bytes now.
    pub async fn sync(&self, served: &Arc<Served>, below: Offset) -> Result<(), Error> {
        let below = below.min(served.replica().head());
        self.shared.troubles.outlast(served.replica().durable(below)).await
    }

    /// Waits until the bytes below `below`, which are recorded, can be read.
    async fn published(
        &self,
        served: &Arc<Served>,
        below: Offset,
        is_disk: bool,
    ) -> Result<(), Error> {
        if is_disk {
            return self.sync(served, below).await;
        }
        let mut head = served.replica().watch();
        let reached = async {
            tokio::select! {
                biased;
                reached = head.wait_for(|head| head.is_gone || head.offset >= below) => {
                    Ok(reached.is_ok_and(|head| head.offset >= below))
                }
                () = self.closed() => Err(index::Error::Closing),
            }
        };
        match self.shared.troubles.outlast(reached).await? {
            true => Ok(()),
            false => Err(Error::Deleted(served.journal().clone())),
        }
    }
}

/// Whether an append may carry content to a journal in this state of suspension.
pub(crate) fn refuses_content(target: &Target) -> bool {
    !target.terms.suspend.may_have_content() || is_suspended(&target.served.entry())
}
