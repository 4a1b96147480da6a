//! Content on its way in: in memory while it is short, then on disk, and never without bound.

use super::budget::{Budget, Share};
use super::pace::{Credit, Price};
use super::{Staged, Target, Whole, check};
use crate::{Error, Memory, limits};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use index::blocking::{Work, begin, off_thread};
use index::staging::Upload;
use index::{Content, DataDir};
use protocol::Sum;
use sha1::{Digest, Sha1};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The bounds of all appends under way.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Of content that is whole when it comes.
    memory: Arc<Budget>,
    /// Of content that comes in pieces.
    pieces: Arc<Budget>,
    disk: Arc<Budget>,
}

/// What the appends of one client may stage.
#[derive(Debug)]
pub struct Connection {
    disk: Arc<Budget>,
}

impl Staging {
    pub fn new(staged_max: u64, memory: Memory) -> Self {
        Staging {
            memory: Budget::new("in memory", memory.whole()),
            pieces: Budget::new("in memory, in pieces", memory.pieces()),
            disk: Budget::new("on disk", staged_max),
        }
    }

    pub fn connection(&self) -> Arc<Connection> {
        let disk = Budget::new("of one connection", limits::STAGED_PER_CONNECTION);
        Arc::new(Connection { disk })
    }

    /// Bytes of unfinished appends, in memory and on disk.
    pub fn used(&self) -> (u64, u64) {
        (self.memory.used() + self.pieces.used(), self.disk.used())
    }

    /// Room for content that is whole.
    pub fn room_in_memory(&self, len: u64) -> Result<Share, Error> {
        let mut room = self.memory.share();
        room.grow(len)?;
        Ok(room)
    }

    fn room_for_pieces(&self, connection: &Connection) -> Held {
        Held {
            memory: self.pieces.share(),
            disk: self.disk.share(),
            connection: Some(connection.disk.share()),
        }
    }

    fn holding(&self, memory: Share) -> Held {
        Held { memory, disk: self.disk.share(), connection: None }
    }
}

/// The room that one append's content takes.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Share,
    disk: Share,
    connection: Option<Share>,
}

impl Held {
    /// Moves `len` bytes from the account of memory to that of the disk.
    fn spill(&mut self, len: u64) -> Result<(), Error> {
        self.disk.grow(len)?;
        if let Some(connection) = &mut self.connection {
            connection.grow(len)?;
        }
        Ok(())
    }
}

/// Takes the content of one append, piece by piece. Dropping it gives the append up.
#[derive(Debug)]
pub struct Stager {
    target: Box<Target>,
    room: Held,
    /// Bytes so far.
    len: u64,
    /// The last pieces, not yet on disk.
    pieces: Vec<Bytes>,
    pieces_len: u64,
    sum: Option<Sha1>,
    disk: OnDisk,
    /// Bytes a second that the journal takes at most, if that is limited.
    rate_max: Option<u64>,
    /// Pieces that had to wait for that, and for how long.
    delayed: u64,
    waited: Duration,
}

/// The part of the content that is on disk.
#[derive(Debug)]
enum OnDisk {
    Nothing,
    /// Pieces are being written, by a thread that may block.
    Writing(Writing),
}

/// The file and the sum, while a thread works on them.
struct Writing(Box<Work<Written>>);

type Written = Result<(Upload, Option<Sha1>), index::Error>;

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writing")
    }
}

impl Stager {
    pub(super) fn new(target: Box<Target>, connection: &Connection) -> Self {
        let room = target.broker.shared.staging.room_for_pieces(connection);
        let sum = target.terms.needs_sum.then(Sha1::new);
        Stager {
            rate_max: target.rate_max(),
            target,
            room,
            len: 0,
            pieces: Vec::new(),
            pieces_len: 0,
            sum,
            disk: OnDisk::Nothing,
            delayed: 0,
            waited: Duration::ZERO,
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Pieces that had to wait for the journal's rate.
    pub fn delayed(&self) -> u64 {
        self.delayed
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next piece. Waits while the disk is slower than the client, or the journal's rate
    /// is used up.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), Error> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.len == 0 {
            check::content_or_repetition(&self.target)?;
            // A repetition costs nothing of the rate.
            self.rate_max = self.rate_max.filter(|_| !check::is_repeated(&self.target));
        }
        let piece_len = piece.len() as u64;
        let max = self.target.broker.shared.config.append_max;
        let len = self.len.saturating_add(piece_len);
        if len > max {
            return Err(Error::TooLarge { len, max });
        }
        if let Some(rate) = self.rate_max {
            self.pay(Price { len: piece_len, rate }).await?;
        }
        self.len = len;
        self.pieces.push(piece);
        self.pieces_len += piece_len;
        let has_memory = self.room.memory.grow(piece_len).is_ok();
        if self.pieces_len > limits::STAGED_IN_MEMORY as u64 || !has_memory {
            Box::pin(self.spill()).await?;
        }
        Ok(())
    }

    /// Waits until the journal's rate allows a piece.
    async fn pay(&mut self, price: Price) -> Result<(), Error> {
        let max = self.target.terms.rate_wait.map(|max| max.saturating_sub(self.waited));
        let waited = Box::pin(price.pay(&self.target.served, max)).await?;
        self.delayed += u64::from(!waited.is_zero());
        self.waited += waited;
        Ok(())
    }

    /// Takes pieces until the stream ends. A stream that rests for too long is given up, and one
    /// that is slower than the broker's least rate.
    pub async fn push_all<E>(
        &mut self,
        pieces: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<(), E>
    where
        E: From<Error>,
    {
        let mut pieces = pin!(pieces);
        let rate = self.target.broker.shared.config.append_rate_min;
        if rate > 0 {
            return Box::pin(self.push_policed(pieces, Credit::new(rate))).await;
        }
        while let Some(piece) = patient(pieces.next()).await? {
            self.push(piece?).await?;
        }
        Ok(())
    }

    async fn push_policed<E>(
        &mut self,
        mut pieces: Pin<&mut impl Stream<Item = Result<Bytes, E>>>,
        mut credit: Credit,
    ) -> Result<(), E>
    where
        E: From<Error>,
    {
        loop {
            let asked = Instant::now();
            let next = timeout(credit.left(), pieces.next()).await;
            let Some(piece) = next.map_err(|_elapsed| credit.too_slow())? else { return Ok(()) };
            let piece = piece?;
            credit.received(piece.len() as u64, asked.elapsed());
            self.push(piece).await?;
        }
    }

    /// Has the pieces written while the next ones come in.
    async fn spill(&mut self) -> Result<(), Error> {
        self.room.spill(self.pieces_len)?;
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces_len = 0;
        let upload = self.written().await?;
        // What is being written stays in memory until it is.
        let in_memory: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.room.memory.shrink_to(in_memory);
        let data = self.target.broker.shared.data.clone();
        let sum = self.sum.take();
        let work = begin(move || write(&data, upload, sum, &pieces));
        self.disk = OnDisk::Writing(Writing(Box::new(work)));
        Ok(())
    }

    /// The file, when nobody writes to it any more.
    async fn written(&mut self) -> Result<Option<Upload>, Error> {
        match std::mem::replace(&mut self.disk, OnDisk::Nothing) {
            OnDisk::Nothing => Ok(None),
            OnDisk::Writing(Writing(work)) => {
                let (upload, sum) = work.done().await?;
                self.sum = sum;
                Ok(Some(upload))
            }
        }
    }

    /// The content is complete.
    pub async fn finish(self) -> Result<Staged, Error> {
        match self.disk {
            OnDisk::Nothing if self.len <= limits::INLINE_SUM as u64 => Ok(self.finish_small()),
            OnDisk::Nothing => Ok(Box::pin(self.finish_in_memory()).await),
            OnDisk::Writing(_) => Box::pin(self.finish_on_disk()).await,
        }
    }

    fn finish_small(self) -> Staged {
        let content = joined(self.pieces);
        let sum = self.sum.map(|sum| sum_of(sum, &content));
        Staged::new(self.target, Content::Memory(content), sum, self.room)
    }

    async fn finish_in_memory(self) -> Staged {
        let content = joined(self.pieces);
        let sum = match self.sum {
            Some(sum) => {
                let content = content.clone();
                Some(off_thread(move || sum_of(sum, &content)).await)
            }
            None => None,
        };
        Staged::new(self.target, Content::Memory(content), sum, self.room)
    }

    async fn finish_on_disk(mut self) -> Result<Staged, Error> {
        if !self.pieces.is_empty() {
            self.spill().await?;
        }
        let upload = self.written().await?.expect("something is on disk");
        let placed = off_thread(move || upload.finish()).await?;
        self.room.memory.shrink_to(0);
        let sum = self.sum.map(|sum| Sum::new(sum.finalize().into()));
        Ok(Staged::new(self.target, Content::Staged(placed), sum, self.room))
    }
}

/// Waits for the next piece, but not for ever.
async fn patient<T>(next: impl Future<Output = T>) -> Result<T, Error> {
    let seconds = limits::IDLE_MAX.as_secs();
    timeout(limits::IDLE_MAX, next).await.map_err(|_elapsed| Error::Idle { seconds })
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut joined = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
    joined.freeze()
}

fn sum_of(mut sum: Sha1, content: &[u8]) -> Sum {
    sum.update(content);
    Sum::new(sum.finalize().into())
}

fn write(
    data: &DataDir,
    upload: Option<Upload>,
    mut sum: Option<Sha1>,
    pieces: &[Bytes],
) -> Result<(Upload, Option<Sha1>), index::Error> {
    let mut upload = match upload {
        Some(upload) => upload,
        None => data.stage()?,
    };
    for piece in pieces {
        upload.push(piece)?;
        if let Some(sum) = &mut sum {
            sum.update(piece);
        }
    }
    Ok((upload, sum))
}

impl Staged {
    fn new(target: Box<Target>, content: Content, sum: Option<Sum>, room: Held) -> Staged {
        Staged(Box::new(Whole { target, content, sum, room }))
    }

    /// Content that came in one piece, and is in memory, with the room that it has there already.
    pub(super) fn whole(
        target: Box<Target>,
        content: Bytes,
        room: Option<Share>,
    ) -> Result<Staged, Error> {
        let shared = &target.broker.shared;
        let (len, max) = (content.len() as u64, shared.config.append_max);
        if len > max {
            return Err(Error::TooLarge { len, max });
        }
        if !content.is_empty() {
            check::content_or_repetition(&target)?;
        }
        let room = room.map_or_else(|| shared.staging.room_in_memory(len), Ok)?;
        let room = shared.staging.holding(room);
        let sum = target.terms.needs_sum.then(|| sum_of(Sha1::new(), &content));
        Ok(Staged::new(target, Content::Memory(content), sum, room))
    }
}
