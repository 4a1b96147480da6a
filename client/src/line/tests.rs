//! Connections that end, say nothing, and are made again.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Connections of which the test has the other ends.
#[derive(Debug, Default)]
struct Ends(Mutex<Vec<DuplexStream>>);

impl Dial for Ends {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let end = self.0.lock().unwrap().pop();
        Box::pin(async move {
            let end = end.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(end) as Box<dyn Stream>)
        })
    }
}

/// A line, and connections whose other ends are returned.
fn line(connections: usize) -> (Line, Watching, Vec<DuplexStream>) {
    let (ours, theirs) = (0..connections).map(|_| duplex(64)).unzip();
    let line = Line::new();
    let dial = Arc::new(Ends(Mutex::new(ours)));
    (line.clone(), Watching::new(dial, line), theirs)
}

fn why(line: &Line) -> Option<String> {
    line.away().borrow().as_ref().map(|away| away.why.clone())
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_away_until_something_comes() {
    let (line, watching, mut theirs) = line(1);
    let mut connection = watching.dial().await.unwrap();
    assert!(watching.dial().await.is_err());
    assert_eq!(why(&line).as_deref(), Some("connection refused"));
    // Case: what was said first stands, with its time
    tokio::time::advance(Duration::from_secs(3)).await;
    line.cut();
    let away = line.away().borrow().clone().unwrap();
    assert_eq!((away.lasts().as_secs(), away.why.as_str()), (3, "connection refused"));
    assert!(connection.read_u8().await.is_err(), "it was cut");

    let (line, watching, _) = self::line(0);
    assert!(watching.dial().await.is_err());
    let (ours, mut other) = duplex(64);
    let mut connection = line.begin(Box::new(ours));
    assert!(why(&line).is_some(), "a connection alone tells nothing");
    other.write_u8(7).await.unwrap();
    assert_eq!(connection.read_u8().await.unwrap(), 7);
    assert_eq!(why(&line), None);
    theirs.clear();
}

#[tokio::test(start_paused = true)]
async fn who_reads_is_told_of_a_cut_at_once() {
    let (line, watching, theirs) = line(2);
    let mut first = watching.dial().await.unwrap();
    let reading = tokio::spawn(async move { first.read_u8().await });
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(line.silence() >= Duration::from_secs(9) && !reading.is_finished());
    line.cut();
    assert_eq!(reading.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(line.away().borrow().as_ref().unwrap().lasts().as_secs(), 9);
    // Case: the next one is another, and lives
    let mut second = watching.dial().await.unwrap();
    assert_eq!(line.number(), 2);
    second.write_u8(1).await.unwrap();
    drop(theirs);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_tells_nothing_if_anything_came() {
    // Case: whether something came before the end, what is told
    for (was_heard, expected) in [(true, None), (false, Some("it ends each connection"))] {
        let (line, watching, mut theirs) = line(1);
        let mut connection = watching.dial().await.unwrap();
        if was_heard {
            theirs[0].write_u8(7).await.unwrap();
            connection.read_u8().await.unwrap();
        }
        theirs.clear();
        assert!(connection.read_u8().await.is_err());
        assert_eq!(why(&line).as_deref(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_waits_for_its_next_connection() {
    let (line, watching, theirs) = line(2);
    let connected = line.clone();
    let waiting = tokio::spawn(async move { connected.connected().await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    let connection = watching.dial().await.unwrap();
    waiting.await.unwrap();
    line.connected().await;
    drop(connection);
    assert!(!line.is_there());
    drop(theirs);
}
