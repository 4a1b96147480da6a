//! The double's sessions of appends.

use super::{Double, Replies, answering};
use protocol::wire::courant::{
    AppendGroup, AppendsRequest, AppendsResponse, Fault, GroupResult, OpenHandle,
};
use std::collections::BTreeMap;
use tonic::{Status, Streaming};

pub(super) type Answers = super::Answers<AppendsResponse>;

/// Serves a session, until it is to lose an answer: then the groups of that message are made, up to
/// the one whose answer is lost, and the session breaks.
pub(super) fn begin(double: Double, messages: Streaming<AppendsRequest>) -> Answers {
    answering(|replies| serve(double, messages, replies))
}

async fn serve(
    double: Double,
    mut messages: Streaming<AppendsRequest>,
    replies: Replies<AppendsResponse>,
) -> Result<(), Status> {
    let mut session = Session { writer: Vec::new(), handles: BTreeMap::new() };
    while let Some(message) = messages.message().await? {
        double.until(|double| !double.table().holds_sessions).await;
        if !message.writer_id.is_empty() {
            session.writer = message.writer_id.to_vec();
        }
        for OpenHandle { handle, journal, life, .. } in message.opens {
            let is_meant = life == 0 || double.life(&journal) == life;
            let refusal = if is_meant { Fault::None } else { Fault::Deleted };
            session.handles.insert(handle, (journal, refusal));
        }
        let groups = message.groups.into_iter();
        let results: Result<_, Status> = groups.map(|group| session.take(&double, group)).collect();
        double.changed();
        // A client that is gone says so with its messages.
        let _ = replies.send(Ok(AppendsResponse { results: results? })).await;
    }
    Ok(())
}

struct Session {
    writer: Vec<u8>,
    /// The journals of handles, and what they refuse with.
    handles: BTreeMap<u32, (String, Fault)>,
}

impl Session {
    fn take(&mut self, double: &Double, group: AppendGroup) -> Result<GroupResult, Status> {
        double.count("group")?;
        let AppendGroup { handle, sequence, content, .. } = group;
        let opened = self.handles.get_mut(&handle);
        let (journal, refusal) = opened.ok_or_else(|| Status::invalid_argument("not open"))?;
        let mut table = double.table();
        if *refusal == Fault::None {
            *refusal = match table.journals.contains_key(journal) {
                true => table.refusals.pop().unwrap_or(Fault::None),
                false => Fault::NotFound,
            };
        }
        if *refusal != Fault::None {
            let (fault, detail) = ((*refusal).into(), "the test says so".to_owned());
            return Ok(GroupResult { handle, sequence, fault, detail, ..Default::default() });
        }
        // As many names take turns as a broker knows groups.
        let turn = u8::try_from(sequence % 4).expect("below four");
        let writer = [&self.writer[..], &[turn]].concat();
        let (begin, end, repeated) = table.append(journal, &content, (&writer, sequence));
        if table.loses_answer() {
            return Err(Status::unavailable("the answer is lost"));
        }
        let life = table.journals[journal].life;
        let (begin, end) = (begin as i64, end as i64);
        let head = end;
        Ok(GroupResult { handle, sequence, begin, end, head, repeated, life, ..Default::default() })
    }
}
