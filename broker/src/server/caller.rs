//! Who asks: one connection, whichever service its requests are for, and what a request may do.

use super::limits::{ARRIVALS_MAX, REQUESTS_MAX};
use crate::auth::{Grant, Guard, Unauthorized};
use crate::gazette::call_error;
use crate::resolve::Resolution;
use crate::{Ask, Broker, Connection, Error, Served, limits};
use client::token::Capability;
use protocol::Journal;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// A connection whose requests are not authorized yet: all it can do is to ask for that. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct Visitor {
    broker: Broker,
    connection: Arc<Connection>,
    stop: Stop,
    guard: Arc<Guard>,
    rooms: Rooms,
}

impl Visitor {
    pub fn new(broker: Broker, stop: Stop, guard: Arc<Guard>, rooms: Rooms) -> Self {
        let connection = broker.connection();
        Visitor { broker, connection, stop, guard, rooms }
    }

    /// A place for a request while it comes in, if this header `authorization` lets anything in at
    /// all: who is not known holds nothing here.
    pub fn knock(&self, authorization: Option<&[u8]>) -> Result<Seat, Error> {
        self.guard.check(authorization, Capability::NONE)?;
        self.rooms.arrivals.take()
    }

    /// A place for a request that everybody may make.
    pub fn enter_open(&self) -> Result<Seat, Error> {
        self.rooms.open.take()
    }

    /// The caller of a request with this header `authorization`, if it may do what it needs and
    /// there is room for it.
    pub fn authorize(
        &self,
        authorization: Option<&[u8]>,
        needed: Capability,
    ) -> Result<Caller, Error> {
        let grant = self.guard.check(authorization, needed)?;
        let seat = self.rooms.requests.take()?;
        let (broker, connection) = (self.broker.clone(), self.connection.clone());
        Ok(Caller { broker, connection, stop: self.stop.clone(), grant, seat })
    }

    /// What the broker counts, as text, with the journals of who may list them.
    pub fn metrics(&self, lister: Option<Caller>) -> String {
        self.broker.metrics().text(&self.broker, lister.as_ref())
    }

    /// The same as [`Visitor::authorize`] for a gRPC request, with the error that answers it.
    pub fn admit<T>(
        &self,
        request: &tonic::Request<T>,
        needed: Capability,
    ) -> Result<Caller, tonic::Status> {
        let authorization = request.metadata().get("authorization");
        let authorized = self.authorize(authorization.map(|header| header.as_bytes()), needed);
        authorized.map_err(call_error)
    }
}

/// A request that is authorized, as the services see it. They look journals up here, where those
/// that the request may not see are not found.
#[derive(Debug, Clone)]
pub struct Caller {
    pub broker: Broker,
    /// What it may stage.
    pub connection: Arc<Connection>,
    /// What waits for a journal to grow ends when the port stops.
    pub stop: Stop,
    pub grant: Grant,
    /// Its place among the requests in flight, kept as long as anything goes on for it.
    #[expect(dead_code, reason = "it is held to be dropped")]
    seat: Seat,
}

/// The places of all connections of a port. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Rooms {
    /// Of requests in flight.
    requests: Seats,
    /// Of those that are not whole yet.
    arrivals: Seats,
    /// Of those that everybody may make.
    open: Seats,
}

impl Default for Rooms {
    fn default() -> Self {
        Rooms {
            requests: Seats::new(REQUESTS_MAX),
            arrivals: Seats::new(ARRIVALS_MAX),
            open: Seats::new(ARRIVALS_MAX),
        }
    }
}

/// So many places. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Seats {
    free: Arc<Semaphore>,
    max: usize,
}

/// One of them, free again when the last clone is dropped.
pub type Seat = Arc<OwnedSemaphorePermit>;

impl Seats {
    pub fn new(max: usize) -> Self {
        Seats { free: Arc::new(Semaphore::new(max)), max }
    }

    /// Takes one without waiting: whoever waited would need a place to wait in.
    fn take(&self) -> Result<Seat, Error> {
        let taken = self.free.clone().try_acquire_owned();
        taken.map(Arc::new).map_err(|_none_left| Error::Busy { max: self.max })
    }
}

impl Caller {
    /// [`Broker::resolve`], within the grant: what is shown, and how long a revision is waited for.
    pub async fn resolve(&self, ask: &Ask) -> Result<Resolution, Error> {
        let resolution = self.within_grant(self.broker.resolve(ask)).await?;
        Ok(self.shown(resolution))
    }

    /// Resolves at the revision of this moment, within the grant.
    pub fn resolve_now(&self, journal: &Journal) -> Resolution {
        self.shown(self.broker.resolve_now(journal))
    }

    /// [`Broker::served`], within the grant.
    pub fn served(&self, journal: &Journal) -> Option<Arc<Served>> {
        self.broker.served(journal).filter(|served| self.sees(served))
    }

    /// Whether the request may see a journal.
    pub fn sees(&self, served: &Served) -> bool {
        self.grant.sees(served.journal(), &served.entry().spec.labels)
    }

    fn shown(&self, resolution: Resolution) -> Resolution {
        match &resolution.served {
            Some(served) if !self.sees(served) => resolution.hidden(),
            _ => resolution,
        }
    }

    /// Returns when the port stops or the grant ends: what goes on for long ends then.
    pub async fn ended(&self) {
        tokio::select! {
            biased;
            () = self.stop.told() => {}
            () = self.grant.ended() => {}
        }
    }

    /// Does what takes as long as its client likes, but not longer than the grant lasts.
    pub async fn within_grant<T, E: From<Error>>(
        &self,
        doing: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            done = doing => done,
            () = self.grant.ended() => Err(Error::from(Unauthorized::Expired).into()),
        }
    }
}

/// Whether the port stops. It never goes on again.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The other end tells it, with true or by being dropped.
    pub fn new() -> (watch::Sender<bool>, Stop) {
        let (sender, receiver) = watch::channel(false);
        (sender, Stop(receiver))
    }

    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is told.
    pub async fn told(&self) {
        let _ = self.0.clone().wait_for(|is_told| *is_told).await;
    }
}

/// Waits for what a client says next, but not for ever.
pub async fn patient<T>(words: impl Future<Output = T>) -> Result<T, Error> {
    let seconds = limits::IDLE_MAX.as_secs();
    tokio::time::timeout(limits::IDLE_MAX, words).await.map_err(|_elapsed| Error::Idle { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Remedy;

    #[test]
    fn a_seat_is_free_again_when_its_request_is_over() {
        let seats = Seats::new(2);
        let taken = [seats.take().expect("free"), seats.clone().take().expect("free")];
        let busy = seats.take().expect_err("all are taken");
        assert_eq!(busy.remedy(), Remedy::Later);
        assert!(busy.to_string().contains("2 requests in flight"), "{busy}");
        drop(taken);
        seats.take().expect("free again");
    }
}
