//! Calls end at the deadline that their caller names, and leave nothing behind.

use crate::raw::{answer, call, framed};
use crate::world::{World, append_of};
use broker::server::Settings;
use futures::{StreamExt, stream};
use protocol::wire::gazette;

const EXCEEDED: &str = "4";

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_frees_what_it_held() {
    let world = World::start(Settings::default()).await;
    world.create("logs/app", b"hello").await;

    // Case: an append whose content does not end.
    let mut begun = append_of("logs/app", b"half of it").iter().map(framed).collect::<Vec<_>>();
    begun.pop();
    let endless = stream::iter(begun).chain(stream::pending());
    let (len, status) = answer(call(&world, "Append", "300m", endless).await).await;
    assert_eq!((len, status.as_str()), (0, EXCEEDED));
    assert_eq!(world.broker.staged(), (0, 0));
    // It was rolled back, and others go on.
    world.append("logs/app", b" world").await;
    let served = world.broker.served(&"logs/app".parse().unwrap()).unwrap();
    assert_eq!(served.stat().head.get(), 11);

    // Case: a read that waits at the head.
    let read =
        gazette::ReadRequest { journal: "logs/app".into(), block: true, ..Default::default() };
    let read = stream::iter([framed(&read)]);
    let (len, status) = answer(call(&world, "Read", "300000u", read).await).await;
    assert!(len > 11, "{len}");
    assert_eq!(status, EXCEEDED);

    // Case: a request that is not whole.
    let part = stream::iter([framed(&gazette::ApplyRequest::default()).slice(..3)]);
    let (_, status) =
        answer(call(&world, "Apply", "0n", part.chain(stream::pending())).await).await;
    assert_eq!(status, EXCEEDED);
    world.stop().await;
}

#[tokio::test]
async fn calls_within_their_deadline_do_not_mind_it() {
    let world = World::start(Settings::default()).await;
    world.create("logs/app", b"hello").await;
    // Case: the timeout, and the status
    for (timeout, expected) in [("1H", "0"), ("99999999H", "0"), ("soon", "13"), ("", "13")] {
        let list = stream::iter([framed(&gazette::ListRequest::default())]);
        let (_, status) = answer(call(&world, "List", timeout, list).await).await;
        assert_eq!(status, expected, "{timeout:?}");
        let append = append_of("logs/app", b"x").iter().map(framed).collect::<Vec<_>>();
        let (_, status) = answer(call(&world, "Append", timeout, stream::iter(append)).await).await;
        assert_eq!(status, expected, "{timeout:?}");
    }
    world.stop().await;
}
