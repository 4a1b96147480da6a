//! What a request for a journal means at this broker (gazette-spec 1.6).
//!
//! A broker that stands alone is the one member of every route, and its primary. Where a request
//! waits for a revision it waits for as long as its caller does.

use crate::{Broker, Error, Served, limits};
use cluster::Entry;
use protocol::request::{AppendRequest, FragmentsRequest, ReadRequest};
use protocol::{Etcd, Header, Journal, ProcessId, Route, Status, SuspendLevel};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often one looks whether a journal that is to be opened was deleted instead.
const OPENING_LOOK: Duration = Duration::from_millis(20);

/// A request, as far as resolution is concerned.
#[derive(Debug, Clone)]
pub struct Ask {
    pub journal: Journal,
    /// Whether another broker may answer in this one's place.
    pub may_proxy: bool,
    /// Whether only the primary will do: for appends.
    pub needs_primary: bool,
    /// The key space must be read through this revision first.
    pub min_revision: i64,
    /// The resolution of the broker that passed the request on.
    pub header: Option<Header>,
}

impl Ask {
    /// The question of a caller of this process.
    pub fn new(journal: Journal) -> Self {
        let (may_proxy, needs_primary) = (false, false);
        Ask { journal, may_proxy, needs_primary, min_revision: 0, header: None }
    }
}

impl From<&ReadRequest> for Ask {
    fn from(request: &ReadRequest) -> Self {
        Ask {
            journal: request.journal.journal().clone(),
            may_proxy: request.may_proxy,
            needs_primary: false,
            min_revision: request.min_revision,
            header: request.header.clone(),
        }
    }
}

impl From<&AppendRequest> for Ask {
    fn from(request: &AppendRequest) -> Self {
        Ask {
            journal: request.journal.journal().clone(),
            may_proxy: request.may_proxy,
            needs_primary: true,
            min_revision: request.min_revision,
            header: request.header.clone(),
        }
    }
}

impl From<&FragmentsRequest> for Ask {
    fn from(request: &FragmentsRequest) -> Self {
        Ask {
            journal: request.journal.journal().clone(),
            may_proxy: request.may_proxy,
            needs_primary: false,
            min_revision: 0,
            header: request.header.clone(),
        }
    }
}

/// Who serves the journal, and at which revision that is so.
///
/// Where the status is `Ok` the journal is served here.
#[derive(Debug, Clone)]
pub struct Resolution {
    pub journal: Journal,
    pub status: Status,
    /// The key space when it was resolved.
    pub etcd: Etcd,
    pub(crate) served: Option<Arc<Served>>,
}

impl Resolution {
    /// The journal, if it is served here; else the status as an error.
    pub fn served(&self) -> Result<&Arc<Served>, Error> {
        match &self.served {
            Some(served) if self.status == Status::Ok => Ok(served),
            _ => Err(Error::Unresolved { journal: self.journal.clone(), status: self.status }),
        }
    }

    /// The same for a caller who may not see the journal: it is not there (gazette-spec 1.5).
    pub(crate) fn hidden(self) -> Resolution {
        Resolution { status: Status::JournalNotFound, served: None, ..self }
    }
}

impl Broker {
    /// Resolves a request. Fails only where Gazette has no status: the request was passed on by a
    /// stranger, or the broker is closing.
    pub async fn resolve(&self, ask: &Ask) -> Result<Resolution, Error> {
        if self.is_closing() {
            return Err(Error::Closing);
        }
        let mut revision = ask.min_revision;
        if let Some(header) = &ask.header {
            self.check_misrouted(header)?;
            revision = revision.max(header.etcd.revision);
        }
        if self.shared.keys.revision() < revision {
            self.shared.keys.wait_for(revision).await?;
        }
        let resolution = self.resolve_now(&ask.journal);
        if resolution.served.is_none() && self.shared.keys.get(&ask.journal).is_some() {
            Box::pin(self.opened(&ask.journal)).await;
            return Ok(self.resolve_now(&ask.journal));
        }
        Ok(resolution)
    }

    /// Waits, but not for long, for a journal that the key space has and that is not served yet: a
    /// list shows it already, and whoever follows the list asks for it at once.
    async fn opened(&self, journal: &Journal) {
        let mut census = self.census();
        let is_opening =
            || self.served(journal).is_none() && self.shared.keys.get(journal).is_some();
        let opened = async {
            while is_opening() {
                tokio::select! {
                    biased;
                    () = self.closed() => return,
                    _ = census.changed() => {}
                    // One that is being deleted instead is not told by the census.
                    () = sleep(OPENING_LOOK) => {}
                }
            }
        };
        // What is not there by then is told as missing.
        let _ = timeout(limits::LISTING_WAIT, opened).await;
    }

    fn check_misrouted(&self, header: &Header) -> Result<(), Error> {
        let cluster_id = self.shared.keys.identity().cluster_id;
        if header.etcd.cluster_id != cluster_id {
            return Err(Error::Misrouted(format!(
                "it speaks of cluster {:016x}, and this is {cluster_id:016x}",
                header.etcd.cluster_id
            )));
        }
        match &header.process_id {
            Some(id) if *id != self.shared.process => {
                let own = &self.shared.process;
                Err(Error::Misrouted(format!("it is for {id}, and this is {own}")))
            }
            _ => Ok(()),
        }
    }

    /// Resolves at the revision of this moment.
    pub(crate) fn resolve_now(&self, journal: &Journal) -> Resolution {
        let served = self.served(journal);
        let status = match served.as_ref().map(|served| served.entry()) {
            None => Status::JournalNotFound,
            Some(entry) if is_suspended(&entry) => Status::Suspended,
            Some(_) => Status::Ok,
        };
        Resolution { journal: journal.clone(), status, etcd: self.shared.keys.etcd(), served }
    }

    /// The header of the first answer to what was resolved, whatever it says.
    pub fn header_of(&self, resolution: &Resolution) -> Header {
        match resolution.status {
            Status::Ok => self.header_with(self.own_route(), resolution.etcd),
            _ => self.header_with(Route::default(), resolution.etcd),
        }
    }

    /// The header of an answer about a journal that was served here just now.
    pub(crate) fn header_here(&self) -> Header {
        self.header_with(self.own_route(), self.shared.keys.etcd())
    }

    /// The header of an answer about no journal: List, Apply and health.
    pub fn header(&self) -> Header {
        self.header_with(Route::default(), self.shared.keys.etcd())
    }

    fn header_with(&self, route: Route, etcd: Etcd) -> Header {
        Header { process_id: Some(self.shared.process.clone()), route, etcd }
    }

    /// The route of every journal that is served: this broker.
    pub fn own_route(&self) -> Route {
        Route::alone(self.shared.process.clone(), self.shared.config.endpoint.clone())
    }

    pub fn process_id(&self) -> &ProcessId {
        &self.shared.process
    }
}

pub(crate) fn is_suspended(entry: &Entry) -> bool {
    entry.spec.suspend.is_some_and(|suspend| suspend.level == SuspendLevel::Full)
}
