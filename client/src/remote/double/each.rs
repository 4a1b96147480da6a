//! The double's streams of appends.

use super::{Double, Replies, answering};
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendResponse, NumberedAnswer,
};
use std::collections::BTreeMap;
use tonic::{Status, Streaming};

pub(super) type Answers = super::Answers<AppendEachResponse>;

/// Serves a stream, until it is to lose an answer: then what came with that is made, up to the one
/// whose answer is lost, and the stream breaks.
pub(super) fn begin(double: Double, messages: Streaming<AppendEachRequest>) -> Answers {
    answering(|replies| serve(double, messages, replies))
}

async fn serve(
    double: Double,
    mut messages: Streaming<AppendEachRequest>,
    replies: Replies<AppendEachResponse>,
) -> Result<(), Status> {
    while let Some(message) = messages.message().await? {
        double.count("each message")?;
        double.changed();
        let mut answers: BTreeMap<u64, AppendResponse> = BTreeMap::new();
        // Held, what was given up meanwhile is not made.
        let mut messages_held = vec![message];
        while double.table().holds_sessions {
            tokio::select! {
                biased;
                next = messages.message() => match next? {
                    Some(next) => {
                        double.count("each message")?;
                        messages_held.push(next);
                        double.changed();
                    }
                    None => return Ok(()),
                },
                () = double.until(|double| !double.table().holds_sessions) => {}
            }
        }
        let gives_up: Vec<u64> =
            messages_held.iter().flat_map(|message| message.gives_up.clone()).collect();
        for numbered in messages_held.into_iter().flat_map(|message| message.appends) {
            double.count("one of each")?;
            if !gives_up.contains(&numbered.number) {
                let append = numbered.append.expect("the client sends it");
                answers.insert(numbered.number, double.answer(append)?);
            }
        }
        // In another order than they came.
        let answers = answers.into_iter().rev();
        let answers =
            answers.map(|(number, answer)| NumberedAnswer { number, answer: Some(answer) });
        let _ = replies.send(Ok(AppendEachResponse { answers: answers.collect() })).await;
    }
    Ok(())
}
