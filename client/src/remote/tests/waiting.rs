//! Waiting for journals to grow, and for their number to change.

use super::*;
use crate::limits::POLLS;
use futures::future::join_all;

#[tokio::test]
async fn a_thousand_waiters_share_few_polls() {
    let (double, remote) = pair(true).await;
    let names: Vec<String> = (0..1000).map(|i| format!("local/{i:04}")).collect();
    names.iter().for_each(|name| double.create(name));
    let waiting = names.iter().map(|name| {
        let (remote, name) = (remote.clone(), journal(name));
        let life = Life::new(double.life(name.as_str()));
        tokio::spawn(async move { remote.grown(&name, life, Offset::ZERO).await })
    });
    let waiting: Vec<_> = waiting.collect();
    let one = 500;
    double.append(&names[one], b"x");
    let mut waiting = waiting;
    let grown = timeout(LIMIT, waiting.remove(one)).await.expect("in time").expect("no panic");
    assert_eq!(grown.expect("there").head.get(), 1);
    names.iter().filter(|name| **name != names[one]).for_each(|name| double.append(name, b"yy"));
    let all = timeout(LIMIT, join_all(waiting)).await.expect("in time");
    for grown in all {
        assert_eq!(grown.expect("no panic").expect("there").head.get(), 2);
    }
    assert!(double.polls().1 <= POLLS, "{:?}", double.polls());
    // Case: nobody waits any more, so that in the end nothing is asked
    names.iter().for_each(|name| double.append(name, b"z"));
    timeout(LIMIT, double.until(|double| double.polls().0 == 0)).await.expect("in time");
}

#[tokio::test]
async fn waiters_are_told_of_ends_and_of_what_they_missed() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        double.append("local/log", b"12345");
        let name = journal("local/log");
        let life = remote.stat(&name).await.expect("there").life;
        // Case: it has grown already, for one who knows less
        let grown = timeout(LIMIT, remote.grown(&name, life, Offset::from(4))).await;
        assert_eq!(grown.expect("in time").expect("there").head.get(), 5);
        // Case: of two waiters each is told at its own offset
        let (near, far) = (Offset::from(5), Offset::from(8));
        let growing = async {
            double.append("local/log", b"67");
            double.append("local/log", b"89");
        };
        let waiting = async {
            tokio::join!(remote.grown(&name, life, far), remote.grown(&name, life, near), growing)
        };
        let (far, near, ()) = timeout(LIMIT, waiting).await.expect("in time");
        assert!(far.expect("there").head.get() > 8 && near.expect("there").head.get() > 5);
    }
    let (double, remote) = pair(true).await;
    double.create("local/log");
    let name = journal("local/log");
    let life = remote.stat(&name).await.expect("there").life;
    // Case: another life under the name
    let remaking = async {
        double.until(|double| double.polls().0 > 0).await;
        double.remove("local/log");
        double.create("local/log");
    };
    let waiting = async { tokio::join!(remote.grown(&name, life, Offset::ZERO), remaking) };
    // Between the two the journal was gone, which is true too.
    match timeout(LIMIT, waiting).await.expect("in time").0 {
        Ok(stat) => assert_ne!(stat.life, life),
        Err(error) => assert!(matches!(error, Error::NotFound(_)), "{error}"),
    }
    // Case: no journal any more
    double.remove("local/log");
    let gone = timeout(LIMIT, remote.grown(&name, life, Offset::ZERO)).await.expect("in time");
    assert!(matches!(gone, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn the_census_changes_with_the_set_of_journals() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        let mut census = remote.census();
        for number in 0..3 {
            let before = *census.borrow_and_update();
            double.create(&format!("local/{number}"));
            let changed = census.wait_for(|census| *census != before);
            timeout(LIMIT, changed).await.expect("in time").expect("the client lives");
        }
    }
}
