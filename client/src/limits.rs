//! The bounds of a client, each with its reason.

use std::time::Duration;

/// A broker that does not take a connection within this is away: loopback and data centres answer
/// in milliseconds, and a lost SYN is sent again after one and after three seconds.
pub const CONNECT_MAX: Duration = Duration::from_secs(5);

/// An answer that waits for nothing by design comes within this, or the connection is dead.
pub const ANSWER_MAX: Duration = Duration::from_secs(20);

/// How often the kernel probes a silent connection. HTTP/2 pings would do the same, but Go servers
/// cut clients off that ping more often than every five minutes.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Content of one message of an append: large enough to cost little, well below the 4 MiB that a
/// Gazette broker takes.
pub const PIECE_LEN: usize = 256 << 10;

/// Messages of an append that are ready before the connection takes them.
pub const PIECES_MAX: usize = 4;

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
