//! The bounds of the port, each with its reason.

use std::time::Duration;

/// Open connections. Each one more is answered 503 and closed: a reader that gets no answer can't
/// tell a full broker from a dead one.
pub const CONNECTIONS_MAX: usize = 4096;

/// How long a new connection may be silent before it is closed, as with Gazette.
pub const GREETING_MAX: Duration = Duration::from_millis(7_500);

/// The least time between two looks whether the files of TLS have changed. Who connects looks, so
/// a quiet port costs nothing.
pub const PAPERS_LOOK: Duration = Duration::from_secs(1);

/// The pause before looking again at a greeting that came in pieces, which hardly ever happens.
pub const GREETING_PAUSE: Duration = Duration::from_millis(10);

/// The pause after a failed accept: where descriptors ran out, some shall be closed first.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long an HTTP/1 client may take for a request's head, and be idle between two requests.
pub const HEAD_MAX: Duration = Duration::from_secs(60);

/// Bytes of a request's head. A journal's name has at most 1,536 bytes when it is escaped.
pub const HEAD_LEN_MAX: u32 = 32 << 10;

/// Requests at a time on one HTTP/2 connection: a consumer reads hundreds of journals over one.
pub const STREAMS_MAX: u32 = 16 << 10;

/// Requests at a time on all connections: each costs some kilobytes, and a watch or a read at the
/// head stays for hours. Those beyond are told to come again later.
pub const REQUESTS_MAX: usize = 64 << 10;

/// Requests at a time that are not whole yet, of clients that are known, and as many of those for
/// health and reflection, which everybody may ask.
pub const ARRIVALS_MAX: usize = 16 << 10;

/// Bytes of each request or message that are not counted while it is not whole: nearly all of them
/// are shorter.
pub const REQUEST_FREE_LEN: usize = 4 << 10;

/// How long such a request may take to come.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// The largest message for health and reflection, which everybody may ask.
pub const OPERATORS_LEN_MAX: usize = 4 << 10;

/// Requests that a client may cancel before they were looked at; more end the connection.
pub const CANCELLED_MAX: usize = 1024;

/// Bytes in flight towards one request: enough for a gigabyte a second at a millisecond's distance.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// Bytes in flight towards all requests of a connection, while there are few connections.
pub const CONNECTION_WINDOW: u32 = 8 << 20;

/// The same however many connections there are: what HTTP/2 begins with.
pub const CONNECTION_WINDOW_MIN: u32 = 64 << 10;

/// The largest HTTP/2 frame that is taken. Larger ones than the usual 16 KiB cost fewer turns.
pub const FRAME_LEN_MAX: u32 = 256 << 10;

/// Answered bytes that wait for one slow reader.
pub const SEND_BUFFER: usize = 256 << 10;

/// The largest message that is taken, as with Gazette.
pub const MESSAGE_LEN_MAX: usize = 4 << 20;

/// Journals of one session of appends: each costs a kilobyte or less, and stays until the session
/// ends.
pub const SESSION_HANDLES_MAX: usize = 16 << 10;

/// Bytes of a session's unanswered groups from which on it reads no more: a quarter of a second at
/// the speed of a session of small appends, and all the groups of 32 journals that are stuck.
pub const SESSION_LEN_MAX: u64 = 8 << 20;

/// Results that wait for a client to take them, from which on its session reads no more: those of a
/// long message. Those of the groups that were read before still come.
pub const SESSION_ANSWERS_MAX: usize = 1024;

/// Messages of a session's results that are ready before the connection takes them.
pub const SESSION_REPLIES: usize = 2;

/// A client that is silent for so long is asked whether it is still there.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// How long that client may take to answer.
pub const KEEP_ALIVE_ANSWER_MAX: Duration = Duration::from_secs(20);

/// How long requests in flight may go on when the broker stops.
pub const DRAIN_MAX: Duration = Duration::from_secs(3);

/// Bytes of a refused body that are taken for nothing, so that its sender comes to read why.
pub const DISCARD_LEN_MAX: usize = 64 << 20;

/// How long that may take.
pub const DISCARD_MAX: Duration = Duration::from_secs(5);

/// Appends of one stream that are under way or whose answers wait, from which on it reads no more:
/// as many as journals of a mount are written to at once, and more, since a client of ours has no
/// more under way (`client::limits::EACH_MAX`). Their bytes are bounded as those of a session.
pub const EACH_UNANSWERED_MAX: usize = 2 * client::limits::EACH_MAX;
