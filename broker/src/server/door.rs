//! Which service answers a request: both protocols share the port and the journals.

use crate::courant::Courant;
use crate::gazette::Gazette;
use crate::http::Gateway;
use crate::server::caller::Caller;
use crate::server::limits;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use protocol::wire::courant::courant_server::CourantServer;
use protocol::wire::gazette::journal_server::JournalServer;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::body::Body;
use tower::Service as _;

/// The services of one connection.
pub struct Doors {
    gazette: JournalServer<Gazette>,
    courant: CourantServer<Courant>,
    gateway: Gateway,
}

impl Doors {
    /// The services for one connection. `checking` is shared by all.
    pub fn new(caller: Caller, checking: Arc<Mutex<()>>) -> Self {
        let max = limits::MESSAGE_LEN_MAX;
        let gazette = JournalServer::new(Gazette::new(caller.clone(), checking));
        let courant = CourantServer::new(Courant::new(caller.clone()));
        Doors {
            gazette: gazette.max_decoding_message_size(max),
            courant: courant.max_decoding_message_size(max),
            gateway: Gateway::new(caller),
        }
    }
}

impl Service<Request<Incoming>> for Doors {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    // The generated services are called directly: a router between would box each body again.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if !is_grpc(&request) {
            let gateway = self.gateway.clone();
            return Box::pin(async move { Ok(gateway.answer(request).await) });
        }
        match request.uri().path().split('/').nth(1) {
            Some("protocol.Journal") => self.gazette.clone().call(request),
            Some("courant.v1.Courant") => self.courant.clone().call(request),
            _ => {
                let status = tonic::Status::unimplemented("no such service here");
                Box::pin(async move { Ok(status.into_http()) })
            }
        }
    }
}

/// Whether it is a gRPC request: HTTP/2 with a content type that begins so, as clients write
/// `application/grpc+proto` as well.
fn is_grpc<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE);
    request.version() == Version::HTTP_2
        && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_grpc_over_http2_goes_to_the_services() {
        let cases = [
            (Version::HTTP_2, Some("application/grpc"), true),
            (Version::HTTP_2, Some("application/grpc+proto"), true),
            (Version::HTTP_2, Some("text/plain"), false),
            (Version::HTTP_2, None, false),
            // Case: a service needs trailers, which HTTP/1 clients don't ask for.
            (Version::HTTP_11, Some("application/grpc"), false),
        ];
        for (version, content_type, expected) in cases {
            let mut request = Request::builder().version(version);
            if let Some(content_type) = content_type {
                request = request.header(CONTENT_TYPE, content_type);
            }
            let request = request.body(()).expect("a valid request");
            assert_eq!(is_grpc(&request), expected, "{version:?} {content_type:?}");
        }
    }
}
