//! The double's `courant.v1`.

use super::{Double, Kept, each, sessions};
use protocol::wire::courant::courant_server::Courant;
use protocol::wire::courant::{
    AppendEachRequest, AppendRequest, AppendResponse, AppendsRequest, ChangedTemplate,
    CreateRequest, CreateResponse, DeleteRequest, DeleteResponse, DeleteTemplateRequest, Fault,
    Head, HeadsRequest, HeadsResponse, HoldRequest, HoldResponse, PruneRequest, PruneResponse,
    PutTemplateRequest, StatusRequest, StatusResponse, SyncRequest, SyncResponse, TemplatesRequest,
    TemplatesResponse,
};
use std::time::Duration;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, async_trait};

fn head(name: &str, kept: &Kept) -> Head {
    let offset = |at: usize| i64::try_from(at).expect("tests are small");
    let len = offset(kept.bytes.len());
    let is_lost = kept.gap.contains(&kept.first);
    Head {
        journal: name.to_owned(),
        life: kept.life,
        first: offset(if is_lost { kept.gap.end } else { kept.first }),
        trimmed: Some(offset(kept.first)),
        head: len,
        synced: len,
        create_revision: kept.revision,
        mod_revision: kept.revision,
        may_read: true,
        may_write: true,
        ..Default::default()
    }
}

impl Double {
    fn heads_now(&self, request: &HeadsRequest) -> (HeadsResponse, bool) {
        let table = self.table();
        let is_meant = |name: &String| match request.journals.is_empty() {
            true => name.starts_with(&request.prefix),
            false => request.journals.contains(name),
        };
        let meant = table.journals.iter().filter(|(name, _)| is_meant(name));
        let heads = meant.map(|(name, kept)| head(name, kept)).collect();
        let is_known = request.known.iter().all(|known| {
            let kept = table.journals.get(&known.journal);
            kept.is_some_and(|kept| {
                kept.life == known.life && kept.bytes.len() as i64 <= known.head
            })
        });
        let is_news = !request.wait || !is_known || request.census != table.census;
        let appends_each = !table.is_without_sessions;
        (HeadsResponse { heads, census: table.census, appends_each }, is_news)
    }

    /// Makes an append that is whole, unless its answer is to be lost.
    pub(super) fn answer(&self, append: AppendRequest) -> Result<AppendResponse, Status> {
        let refused = |fault: Fault, head| {
            let (fault, detail) = (fault.into(), "the test says so".to_owned());
            Ok(AppendResponse { fault, detail, head, ..Default::default() })
        };
        let mut table = self.table();
        let Some(kept) = table.journals.get(&append.journal) else {
            return refused(Fault::NotFound, 0);
        };
        let (life, end) = (kept.life, kept.bytes.len() as i64);
        if append.offset.is_some_and(|offset| offset != end) {
            return refused(Fault::WrongOffset, end);
        }
        if let Some(fault) = table.refusals.pop() {
            return refused(fault, end);
        }
        let writer = (&append.writer_id[..], append.sequence);
        let (begin, end, repeated) = table.append(&append.journal, &append.content, writer);
        let is_lost = table.loses_answer();
        drop(table);
        self.changed();
        if is_lost {
            return Err(Status::unavailable("the answer is lost"));
        }
        let (begin, end) = (begin as i64, end as i64);
        Ok(AppendResponse { begin, end, head: end, repeated, life, ..Default::default() })
    }

    fn count_poll(&self, by: isize) {
        let mut table = self.table();
        let (now, most) = table.polls;
        let now = now.saturating_add_signed(by);
        table.polls = (now, most.max(now));
        drop(table);
        self.changed();
    }
}

/// A poll that waits, until it is answered or given up.
struct Waiting<'d>(&'d Double);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count_poll(-1);
    }
}

#[async_trait]
impl Courant for Double {
    type AppendsStream = sessions::Answers;
    type AppendEachStream = each::Answers;
    type HoldStream = ReceiverStream<Result<HoldResponse, Status>>;

    async fn hold(
        &self,
        _request: Request<Streaming<HoldRequest>>,
    ) -> Result<Response<Self::HoldStream>, Status> {
        Err(Status::unimplemented("nothing here is kept in files"))
    }

    async fn appends(
        &self,
        request: Request<Streaming<AppendsRequest>>,
    ) -> Result<Response<Self::AppendsStream>, Status> {
        self.count("appends")?;
        if self.table().is_without_sessions {
            return Err(Status::unimplemented("nothing is known of sessions"));
        }
        Ok(Response::new(sessions::begin(self.clone(), request.into_inner())))
    }

    async fn append_each(
        &self,
        request: Request<Streaming<AppendEachRequest>>,
    ) -> Result<Response<Self::AppendEachStream>, Status> {
        self.count("each")?;
        let is_there = !self.table().is_without_sessions;
        is_there.then_some(()).ok_or_else(|| Status::unimplemented("there is no such stream"))?;
        Ok(Response::new(each::begin(self.clone(), request.into_inner())))
    }

    async fn append(
        &self,
        request: Request<Streaming<AppendRequest>>,
    ) -> Result<Response<AppendResponse>, Status> {
        self.count("append")?;
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| Status::unknown("no message"))?;
        let (mut content, mut is_whole) = (first.content.to_vec(), first.commit);
        while let Some(message) = messages.message().await? {
            content.extend_from_slice(&message.content);
            is_whole |= message.commit;
        }
        if !is_whole {
            return Err(Status::unknown("the append was not committed"));
        }
        self.answer(AppendRequest { content: content.into(), ..first }).map(Response::new)
    }

    async fn sync(&self, request: Request<SyncRequest>) -> Result<Response<SyncResponse>, Status> {
        self.count("sync")?;
        let synced = request.into_inner().offset;
        Ok(Response::new(SyncResponse { synced, ..Default::default() }))
    }

    async fn heads(
        &self,
        request: Request<HeadsRequest>,
    ) -> Result<Response<HeadsResponse>, Status> {
        self.count("heads")?;
        let request = request.into_inner();
        let mut changes = self.shared.changes.subscribe();
        let _waiting = request.wait.then(|| {
            self.count_poll(1);
            Waiting(self)
        });
        let waiting = async {
            while !self.heads_now(&request).1 {
                changes.changed().await.expect("the double lives");
            }
        };
        let limit = Duration::from_millis(request.wait_ms.into());
        // Past the time the heads are told as they are.
        let _in_time = timeout(limit, waiting).await;
        Ok(Response::new(self.heads_now(&request).0))
    }

    async fn create(
        &self,
        request: Request<CreateRequest>,
    ) -> Result<Response<CreateResponse>, Status> {
        self.count("create")?;
        let name = request.into_inner().journal;
        if name.contains("refused") {
            let (fault, detail) = (Fault::Refused.into(), "the test says so".to_owned());
            return Ok(Response::new(CreateResponse { fault, detail, ..Default::default() }));
        }
        let created = !self.table().journals.contains_key(&name);
        if created {
            Double::create(self, &name);
        }
        let head = Some(head(&name, &self.table().journals[&name]));
        Ok(Response::new(CreateResponse { head, created, ..Default::default() }))
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<DeleteResponse>, Status> {
        self.count("delete")?;
        let request = request.into_inner();
        let objects = vec![format!("{}/object", request.journal)];
        if !request.dry_run {
            self.remove(&request.journal);
        }
        Ok(Response::new(DeleteResponse { objects, bytes: 7, ..Default::default() }))
    }

    async fn status(
        &self,
        _request: Request<StatusRequest>,
    ) -> Result<Response<StatusResponse>, Status> {
        Err(Status::unimplemented("not of interest"))
    }

    async fn prune(
        &self,
        _request: Request<PruneRequest>,
    ) -> Result<Response<PruneResponse>, Status> {
        Err(Status::unimplemented("not of interest"))
    }

    async fn templates(
        &self,
        _request: Request<TemplatesRequest>,
    ) -> Result<Response<TemplatesResponse>, Status> {
        Err(Status::unimplemented("not of interest"))
    }

    async fn put_template(
        &self,
        _request: Request<PutTemplateRequest>,
    ) -> Result<Response<ChangedTemplate>, Status> {
        Err(Status::unimplemented("not of interest"))
    }

    async fn delete_template(
        &self,
        _request: Request<DeleteTemplateRequest>,
    ) -> Result<Response<ChangedTemplate>, Status> {
        Err(Status::unimplemented("not of interest"))
    }
}
