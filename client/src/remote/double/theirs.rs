//! The double's Gazette protocol.

use super::Double;
use futures::stream::{self, BoxStream, StreamExt};
use protocol::request::{ReadFrom, ReadRequest};
use protocol::response::{AppendResponse, ApplyResponse, FragmentsResponse, ReadMetadata};
use protocol::response::{ListResponse, ListedJournal, ReadResponse};
use protocol::wire::gazette::{self, journal_server::Journal as Service};
use protocol::{Codec, Etcd, Fragment, Header, JournalSpec, LabelSet, Offset, Route, Span, Sum};
use protocol::{Selector, duration};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, async_trait};

/// Bytes of one message of content.
const CONTENT_LEN: usize = 32 << 10;

fn offset(at: usize) -> Offset {
    Offset::try_from(at as u64).expect("tests are small")
}

fn index(at: Offset) -> usize {
    usize::try_from(at.get()).expect("not negative")
}

fn spec(name: &str) -> JournalSpec {
    let fragment = gazette::journal_spec::Fragment {
        length: 4096,
        compression_codec: 1,
        refresh_interval: Some(duration::to_wire(std::time::Duration::from_secs(30))),
        ..Default::default()
    };
    let fragment = Some(fragment);
    let spec =
        gazette::JournalSpec { name: name.into(), replication: 1, fragment, ..Default::default() };
    spec.try_into().expect("a valid spec")
}

impl Double {
    fn header(&self) -> Header {
        let revision = self.table().census as i64 + 1;
        let etcd = Etcd { cluster_id: 1, member_id: 1, revision, raft_term: 1 };
        Header { process_id: None, route: Route::default(), etcd }
    }

    fn listed(&self, selector: &Selector) -> gazette::ListResponse {
        let header = Some(self.header());
        let table = self.table();
        let listed = table.journals.iter().map(|(name, kept)| ListedJournal {
            spec: spec(name),
            mod_revision: kept.revision,
            create_revision: kept.revision,
            route: Route::default(),
        });
        let meant = listed.filter(|l| selector.matches(&l.spec.labels, &l.spec.name));
        let journals = meant.collect();
        ListResponse { status: protocol::Status::Ok, header, journals }.into()
    }

    /// The metadata at an offset.
    fn metadata(&self, name: &str, from: ReadFrom) -> ReadMetadata {
        let header = self.header();
        let table = self.table();
        let Some(kept) = table.journals.get(name) else {
            return ReadMetadata::refusal(protocol::Status::JournalNotFound, header);
        };
        let head = offset(kept.bytes.len());
        let mut at = match from {
            ReadFrom::Head => head,
            ReadFrom::At(at) => at.max(offset(kept.first)),
        };
        if kept.gap.contains(&index(at)) {
            at = offset(kept.gap.end);
        }
        let refusal = ReadMetadata::refusal(protocol::Status::OffsetNotYetAvailable, header);
        if at >= head {
            return ReadMetadata { offset: at, write_head: head, ..refusal };
        }
        let is_there = |(stored, _): &&(Fragment, String)| stored.span.contains(at);
        if let Some((stored, url)) = kept.stored.iter().find(is_there) {
            let (status, fragment) = (protocol::Status::Ok, Some(stored.clone()));
            let fragment_url = url.clone();
            let found = ReadMetadata { status, offset: at, write_head: head, ..refusal };
            return ReadMetadata { fragment, fragment_url, ..found };
        }
        let end = if index(at) < kept.gap.start { offset(kept.gap.start) } else { head };
        let journal = name.parse().expect("valid");
        let fragment = Fragment::local(journal, Span::between(at, end), Sum::ZERO, Codec::None);
        let (status, fragment) = (protocol::Status::Ok, Some(fragment));
        ReadMetadata { status, offset: at, write_head: head, fragment, ..refusal }
    }

    fn content(&self, name: &str, span: Span) -> Vec<u8> {
        self.table().journals[name].bytes[index(span.begin())..index(span.end())].to_vec()
    }

    async fn serve_read(
        self,
        request: ReadRequest,
        answers: mpsc::Sender<Result<gazette::ReadResponse, Status>>,
    ) {
        let name = request.journal.journal().as_str().to_owned();
        let mut changes = self.shared.changes.subscribe();
        let broken = self.table().broken_reads.pop();
        let (mut from, mut sent) = (request.from, 0);
        let mut is_waiting = false;
        loop {
            let metadata = self.metadata(&name, from);
            let is_at_head = metadata.status == protocol::Status::OffsetNotYetAvailable;
            if is_at_head && request.block {
                if from == ReadFrom::Head {
                    from = ReadFrom::At(metadata.offset);
                }
                if !std::mem::replace(&mut is_waiting, true) {
                    *self.table().requests.entry("wait").or_default() += 1;
                    self.changed();
                }
                tokio::select! {
                    biased;
                    () = answers.closed() => return,
                    changed = changes.changed() => changed.expect("the double lives"),
                }
                continue;
            }
            is_waiting = false;
            let (fragment, found) = (metadata.fragment.clone(), metadata.offset);
            if answers.send(Ok(metadata.into())).await.is_err() {
                return;
            }
            let Some(fragment) = fragment.filter(|_| !request.metadata_only) else { return };
            if fragment.is_persisted() {
                if !request.may_proxy {
                    return;
                }
                *self.table().requests.entry("proxied").or_default() += 1;
            }
            let mut at = found;
            let end = request.end.unwrap_or(Offset::MAX).min(fragment.end());
            for piece in self.content(&name, Span::between(at, end)).chunks(CONTENT_LEN) {
                if broken.is_some_and(|after| sent >= after) {
                    let _gone = answers.send(Err(Status::unavailable("broken"))).await;
                    return;
                }
                let content = piece.to_vec().into();
                let message = ReadResponse::Content { offset: at, content };
                if answers.send(Ok(message.into())).await.is_err() {
                    return;
                }
                at = at.plus(piece.len() as u64);
                sent += piece.len();
            }
            if request.end == Some(at) {
                return;
            }
            from = ReadFrom::At(at);
        }
    }
}

#[async_trait]
impl Service for Double {
    type ListStream = BoxStream<'static, Result<gazette::ListResponse, Status>>;
    type ReadStream = ReceiverStream<Result<gazette::ReadResponse, Status>>;
    type ReplicateStream = BoxStream<'static, Result<gazette::ReplicateResponse, Status>>;

    async fn list(
        &self,
        request: Request<gazette::ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        self.count("gazette.list")?;
        let request = protocol::request::ListRequest::try_from(request.into_inner())?;
        if !request.watch {
            let page = self.listed(&request.selector);
            return Ok(Response::new(stream::iter([Ok(page)]).boxed()));
        }
        let (double, changes) = (self.clone(), self.shared.changes.subscribe());
        let changes = tokio_stream::wrappers::WatchStream::new(changes);
        let pages = changes.map(move |_| Ok(double.listed(&request.selector)));
        Ok(Response::new(pages.boxed()))
    }

    async fn read(
        &self,
        request: Request<gazette::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        self.count("gazette.read")?;
        let request = ReadRequest::try_from(request.into_inner())?;
        let (sender, answers) = mpsc::channel(4);
        tokio::spawn(self.clone().serve_read(request, sender));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn append(
        &self,
        request: Request<Streaming<gazette::AppendRequest>>,
    ) -> Result<Response<gazette::AppendResponse>, Status> {
        self.count("gazette.append")?;
        let mut messages = request.into_inner();
        let first = messages.message().await?.ok_or_else(|| Status::unknown("no message"))?;
        let (mut content, mut is_whole) = (Vec::new(), false);
        while let Some(message) = messages.message().await? {
            is_whole = message.content.is_empty();
            content.extend_from_slice(&message.content);
        }
        if !is_whole {
            return Err(Status::unknown("append stream: unexpected EOF"));
        }
        let header = self.header();
        let mut table = self.table();
        let head = table.journals.get(&first.journal).map(|kept| kept.bytes.len() as i64);
        let refused =
            |status| Ok(Response::new(AppendResponse::refusal(status, header.clone()).into()));
        match head {
            None => return refused(protocol::Status::JournalNotFound),
            Some(head) if first.offset != 0 && first.offset != head => {
                return refused(protocol::Status::WrongAppendOffset);
            }
            Some(_) => {}
        }
        let (begin, end, _) = table.append(&first.journal, &content, (&[], 0));
        let is_lost = table.loses_answer();
        drop(table);
        self.changed();
        if is_lost {
            return Err(Status::unavailable("the answer is lost"));
        }
        let span = Span::between(offset(begin), offset(end));
        let journal = first.journal.parse().expect("valid");
        let commit = Some(Fragment::local(journal, span, Sum::ZERO, Codec::None));
        let refusal = AppendResponse::refusal(protocol::Status::Ok, header);
        let registers = Some(LabelSet::default());
        Ok(Response::new(AppendResponse { commit, registers, ..refusal }.into()))
    }

    async fn apply(
        &self,
        request: Request<gazette::ApplyRequest>,
    ) -> Result<Response<gazette::ApplyResponse>, Status> {
        self.count("gazette.apply")?;
        let request = protocol::request::ApplyRequest::try_from(request.into_inner())?;
        let revision = |name: &str| self.table().journals.get(name).map(|kept| kept.revision);
        let holds = request
            .changes
            .iter()
            .all(|change| change.expect().holds(revision(change.journal().as_str())));
        let status = match holds {
            true => protocol::Status::Ok,
            false => protocol::Status::EtcdTransactionFailed,
        };
        if holds {
            request.changes.iter().for_each(|change| self.create(change.journal().as_str()));
        }
        Ok(Response::new(ApplyResponse { status, header: self.header() }.into()))
    }

    async fn replicate(
        &self,
        _request: Request<Streaming<gazette::ReplicateRequest>>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        Err(Status::unimplemented("between brokers"))
    }

    /// Two pages of one fragment each.
    async fn list_fragments(
        &self,
        request: Request<gazette::FragmentsRequest>,
    ) -> Result<Response<gazette::FragmentsResponse>, Status> {
        self.count("gazette.fragments")?;
        let request = request.into_inner();
        let begin = offset(request.next_page_token as usize);
        let journal = request.journal.parse().expect("valid");
        let fragment = Fragment::local(journal, Span::at(begin, 10), Sum::ZERO, Codec::None);
        let signed_url = String::new();
        let listed = protocol::response::ListedFragment { fragment, signed_url };
        let next_page_token = (begin == Offset::ZERO).then_some(Offset::from(10));
        let (status, header) = (protocol::Status::Ok, self.header());
        let fragments = vec![listed];
        let answer = FragmentsResponse { status, header, fragments, next_page_token };
        Ok(Response::new(answer.into()))
    }

    async fn fragment_store_health(
        &self,
        _request: Request<gazette::FragmentStoreHealthRequest>,
    ) -> Result<Response<gazette::FragmentStoreHealthResponse>, Status> {
        Err(Status::unimplemented("not of interest"))
    }
}
