//! The bounds of a client, each with its reason.

use index::store::{PART_LEN, PARTS_AT_ONCE};
use std::time::Duration;

/// A broker that does not take a connection within this is away: loopback and data centres answer
/// in milliseconds, and a lost SYN is sent again after one and after three seconds.
pub const CONNECT_MAX: Duration = Duration::from_secs(5);

/// An answer that waits for nothing by design comes within this, or the connection is dead.
pub const ANSWER_MAX: Duration = Duration::from_secs(20);

/// How often the kernel probes a silent connection. HTTP/2 pings would do the same, but Go servers
/// cut clients off that ping more often than every five minutes.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long nothing may come over a connection until the broker is asked whether it is there. It is
/// the interval of a keepalive that a program makes, and finds out what those of the kernel and of
/// HTTP/2 do not: a process that stands still, and a proxy that has lost its broker.
pub const PULSE_AFTER: Duration = Duration::from_secs(5);

/// How long such a request may be without an answer, or anything else that comes, until its
/// connection is cut. With [`PULSE_AFTER`], what waits on a broker that is gone waits for 10 s at
/// most, and less than a write does by default.
pub const PULSE_MAX: Duration = CONNECT_MAX;

/// Content of one message of an append: large enough to cost little, well below the 4 MiB that a
/// Gazette broker takes.
pub const PIECE_LEN: usize = 256 << 10;

/// Messages of an append that are ready before the connection takes them.
pub const PIECES_MAX: usize = 4;

/// Groups of one journal that a session of appends has unanswered: a broker knows so many of the
/// last ones when they are repeated, each of which takes a place in the journal's table of writers.
pub const GROUPS_UNANSWERED: usize = 4;

/// Bytes of a group: what a broker's commit log holds in one record, without a staging file.
pub const GROUP_LEN: usize = 64 << 10;

/// Bytes of groups from which on a message takes no more: it is encoded at one go, and a broker
/// begins with it when it is whole.
pub const MESSAGE_OF_GROUPS_LEN: usize = 256 << 10;

/// Unanswered bytes of one journal that an appender keeps: the groups under way, and as much again
/// several times, which is filled while they are.
pub const LANE_LEN: usize = 1 << 20;

/// The same of all its journals: as much as a broker reads ahead of its answers.
pub const LANES_LEN: usize = 8 << 20;

/// Journals of one session, as many as a broker takes. Appends to further ones go one by one.
pub const LANES_MAX: usize = 16 << 10;

/// Appends that go by themselves and are under way on the one stream of them: with those of more
/// journals, none of which gets on, a broker would read none of the others. Further ones are calls
/// of their own.
pub const EACH_MAX: usize = 512;

/// Bytes of such an append: as a group's. What is longer is worth a call.
pub const EACH_LEN: usize = GROUP_LEN;

/// Bytes of all of them: half of what a broker reads ahead of its answers.
pub const EACHES_LEN: usize = 4 << 20;

/// How long a stream of appends may take to begin. A broker that is there begins it at once, and
/// one that is gone is found out within [`PULSE_AFTER`] and [`PULSE_MAX`]; this is for something on
/// the way that takes a stream for a request that is not over.
pub const EACH_BEGIN_MAX: Duration = PULSE_MAX;

/// How long the stream is not asked for after it did not begin.
pub const EACH_REST: Duration = Duration::from_secs(60);

/// Appends under way at once on a broker that has no sessions: few of its journals wait for each
/// other, and its streams are for others too.
pub const PLAIN_AT_ONCE: usize = 64;

/// The largest message that is read, as in Gazette's own clients.
pub const MESSAGE_MAX: usize = 16 << 20;

/// Bytes that a broker may send ahead on one stream: eight reads of a kernel's read-ahead.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// Bytes that a broker may send ahead on all streams. Streams that nobody drains must not stop the
/// others, so only the windows of the streams bound it, as in Gazette's own clients.
pub const CONNECTION_WINDOW: u32 = i32::MAX.unsigned_abs();

/// Streams that are kept open behind sequential reads. With `STREAM_WINDOW` it bounds the memory of
/// what is read ahead.
pub const OPEN_STREAMS: usize = 32;

/// How long a stream is kept open for a read that goes on where it stopped. A broker that ends
/// waits for streams whose reader does not take what is there, so they go soon.
pub const STREAM_IDLE: Duration = Duration::from_secs(5);

/// Long polls that share the waiters between them. More make the answer to one growing journal
/// smaller, and each takes a stream of the connection, of which a server allows about 200.
pub const POLLS: usize = 16;

/// How long a broker may keep a long poll: shorter than what proxies cut off, which is a minute.
pub const POLL_WAIT: Duration = Duration::from_secs(25);

/// How long a poll that is to be asked anew waits for more waiters to come, so that a thousand of
/// them do not ask a thousand times.
pub const POLL_GATHER: Duration = Duration::from_millis(2);

/// Waiters on a Gazette broker, each of which is a stream of its own.
pub const BLOCKED_READS_MAX: usize = 4096;

/// Requests under way at once for the heads of a Gazette broker's journals.
pub const HEADS_AT_ONCE: usize = 16;

/// The first pause before a request is made again, and the longest.
pub const PAUSE_FIRST: Duration = Duration::from_millis(5);
pub const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Pieces of `PIECE_LEN` that a stored fragment is read ahead: 2 MiB, enough to keep a fetch going
/// while a reader takes what came.
pub const FLOW_PIECES: usize = 8;

/// Bytes before the end of a fragment from which on the next one is fetched as well: then the last
/// parts of this one are under way, and the store would soon be asked for nothing. With
/// `FLOW_PIECES`, a sequential reader holds 4 MiB at most besides its parts.
pub const NEXT_FLOW_WITHIN: u64 = PARTS_AT_ONCE as u64 * PART_LEN;

/// Flows that fetch large objects in parts, each of which takes 16 MiB; the others fetch in one
/// piece.
pub const PARTED_FLOWS: usize = 4;

/// How often a fragment is fetched again by the same way from where it broke: a server that cuts
/// long answers is not a broken one. A part's progress lets it begin to count anew.
pub const FLOW_RESUMES: u32 = 3;

/// Sequential readers of a bucket whose flows are kept, as `OPEN_STREAMS`: 64 MiB in all.
pub const OPEN_FLOWS: usize = 16;

/// Bytes that a reader may pass over before its flow is begun anew: the pages that a kernel leaves
/// out when it reads ahead.
pub const FLOW_SKIP: u64 = 1 << 20;

/// How long a way to a store rests that failed, at first and at most: a store that is away is not
/// asked for each read, and one that is back is found within minutes.
pub const REST_FIRST: Duration = Duration::from_secs(5);
pub const REST_MAX: Duration = Duration::from_secs(300);

/// Failures that are remembered.
pub const RESTS_MAX: usize = 1024;

/// How often a bucket is listed, unless told otherwise. Listings cost money, and a fragment comes
/// every few minutes.
pub const BUCKET_INTERVAL: Duration = Duration::from_secs(30);

/// How often the end of a journal is looked for that somebody follows.
pub const FOLLOWED_INTERVAL: Duration = Duration::from_secs(2);

/// Followed journals that are looked at, at once and in all. Of more, each waits for the listing.
pub const FOLLOWED_AT_ONCE: usize = 8;
pub const FOLLOWED_MAX: usize = 256;

/// The longest pause after listings that failed.
pub const BUCKET_PAUSE_MAX: Duration = Duration::from_secs(300);

/// Fragments that are verified at once: as many as keep a few cores and a line busy.
pub const AUDITED_AT_ONCE: usize = 4;
