//! How a broker is reached: its URL, who asks, and whom TLS trusts.

use crate::dial::{Dial, Dialer, Network};
use crate::line::{Line, Watching};
use crate::remote::cause;
use crate::token::{Capability, Keys};
use crate::{Error, limits};
use index::Clock;
use protocol::Invalid;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{GrpcMethod, Request, Status};

/// The way to a broker: a URL, and what is shown and checked on it. Nothing is connected by it.
#[derive(Debug, Clone)]
pub struct Connect {
    url: String,
    credentials: Credentials,
    ca_file: Option<PathBuf>,
    /// Certificate and key.
    identity: Option<(PathBuf, PathBuf)>,
    /// What makes the connections, where it is not the network.
    dial: Option<Arc<dyn Dial>>,
}

/// A connection whose requests carry credentials.
pub(crate) type Wire = InterceptedService<Channel, Credentials>;

/// What requests are authorized by.
#[derive(Debug, Clone)]
pub(crate) enum Credentials {
    None,
    /// One token for all, as it goes on the wire.
    Token(MetadataValue<Ascii>),
    /// A token of one's own for each request.
    Keys(Arc<Keys>, Arc<dyn Clock>),
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let header = match self {
            Credentials::None => return Ok(request),
            Credentials::Token(header) => header.clone(),
            Credentials::Keys(keys, clock) => {
                let call = request.extensions().get::<GrpcMethod<'static>>();
                let needed = call.and_then(|c| Capability::of_call(c.service(), c.method()));
                bearer(&keys.sign_for(needed.unwrap_or(Capability::NONE), clock.now()))
                    .expect("base64 is ASCII")
            }
        };
        request.metadata_mut().insert("authorization", header);
        Ok(request)
    }
}

fn bearer(token: &str) -> Option<MetadataValue<Ascii>> {
    let mut header: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok()?;
    header.set_sensitive(true);
    Some(header)
}

impl Connect {
    /// The way to the broker at `url`: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:///PATH`
    /// of a socket. Fails on the URL only, without asking anybody.
    pub fn new(url: &str) -> Result<Self, Error> {
        check_url(url)?;
        let credentials = Credentials::None;
        Ok(Connect { url: url.to_owned(), credentials, ca_file: None, identity: None, dial: None })
    }

    /// Shows this bearer token with each request.
    pub fn with_token(mut self, token: &str) -> Result<Self, Error> {
        let header = bearer(token.trim());
        let invalid = || Invalid::new("not a bearer token: it holds more than visible ASCII");
        self.credentials = Credentials::Token(header.ok_or_else(invalid)?);
        Ok(self)
    }

    /// Signs a token for each request with the first of `keys`: for what the request needs, and
    /// for all journals.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys, clock: Arc<dyn Clock>) -> Self {
        self.credentials = Credentials::Keys(Arc::new(keys), clock);
        self
    }

    /// Trusts the certificates in this PEM file instead of those that the system trusts.
    #[must_use]
    pub fn with_ca_file(mut self, ca_file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(ca_file.into());
        self
    }

    /// Shows the certificate of one PEM file to a broker that asks for one, with the key of the
    /// other.
    #[must_use]
    pub fn with_identity_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Takes its connections from `dial`. The URL is one of `http` then, and only names the broker.
    #[must_use]
    pub fn with_dial(mut self, dial: Arc<dyn Dial>) -> Self {
        self.dial = Some(dial);
        self
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// A connection that is made with the first request, and again after it broke. Needs a tokio
    /// runtime around it. Fails on files that can't be read or hold no certificate.
    /// What comes over it is told to `line`.
    pub(crate) fn open(&self, line: &Line) -> Result<Wire, Error> {
        // A socket of another name is reached by its path alone.
        let url = socket_path(&self.url).map_or(self.url.clone(), |path| format!("unix:{path}"));
        let endpoint = Endpoint::from_shared(url)
            .map_err(|error| invalid_url(&self.url, &cause(&error)))?
            .connect_timeout(limits::CONNECT_MAX)
            .initial_stream_window_size(limits::STREAM_WINDOW)
            .initial_connection_window_size(limits::CONNECTION_WINDOW);
        let endpoint = if self.url.starts_with("https:") {
            let unusable = |error| Error::Io(format!("TLS for {}: {}", self.url, cause(&error)));
            endpoint.tls_config(self.tls()?).map_err(unusable)?
        } else {
            endpoint
        };
        let dial = match (&self.dial, socket_path(&self.url)) {
            (Some(dial), _) => dial.clone(),
            (None, Some(path)) => Arc::new(Network::Unix(path.into())),
            (None, None) => Arc::new(Network::tcp(endpoint.uri().clone())),
        };
        let watching = Watching::new(dial, line.clone());
        let channel = endpoint.connect_with_connector_lazy(Dialer(watching));
        Ok(InterceptedService::new(channel, self.credentials.clone()))
    }

    fn tls(&self) -> Result<ClientTlsConfig, Error> {
        let mut tls = ClientTlsConfig::new();
        tls = match &self.ca_file {
            Some(file) => tls.ca_certificate(Certificate::from_pem(read(file)?)),
            None => tls.with_native_roots(),
        };
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(tls)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file)
        .map_err(|error| Error::Io(format!("can't read {}: {error}", file.display())))
}

/// Refuses a URL that no broker is reached by.
pub(crate) fn check_url(url: &str) -> Result<(), Invalid> {
    if socket_path(url).is_some() {
        return Ok(());
    }
    protocol::check_endpoint(url).map_err(|invalid| invalid_url(url, invalid.reason()))?;
    match url.split_once("://") {
        Some(("http" | "https", _)) => Ok(()),
        Some(("unix", _)) => Err(invalid_url(url, "it has no path")),
        Some((scheme, _)) => Err(invalid_url(url, &format!("{scheme} is not supported"))),
        None => Err(invalid_url(url, "it has no scheme")),
    }
}

/// The path of a `unix` URL. Its host says nothing: endpoints of brokers must have one.
fn socket_path(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("unix://")?;
    let path = &rest[rest.find('/')?..];
    (path.len() > 1).then_some(path)
}

fn invalid_url(url: &str, why: &str) -> Invalid {
    let expected = "expected http://HOST:PORT, https://HOST:PORT or unix:///PATH";
    Invalid::new(format!("not a broker's URL ({url}; {expected}): {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_of_three_schemes() {
        // Case: the URL, and whether a broker may be reached by it
        let cases = [
            ("http://127.0.0.1:8080", true),
            ("https://broker:443", true),
            ("unix:///run/courant.sock", true),
            ("unix://localhost/run/courant.sock", true),
            ("unix://", false),
            ("unix:///", false),
            ("unix://host", false),
            ("nowhere", false),
            ("127.0.0.1:80", false),
            ("http://", false),
            ("http://a b/", false),
            ("ftp://a:1", false),
        ];
        for (url, expected) in cases {
            assert_eq!(Connect::new(url).is_ok(), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn files_that_cannot_be_used_are_named() {
        let https = || Connect::new("https://broker:443").expect("a valid URL");
        let text = https()
            .with_ca_file("/no/such/file")
            .open(&Line::new())
            .expect_err("no file")
            .to_string();
        assert!(text.contains("can't read /no/such/file: "), "{text}");
        let text = https().with_identity_files("/no/cert", "/no/key");
        let text =
            text.with_ca_file("/dev/null").open(&Line::new()).expect_err("no file").to_string();
        assert!(text.contains("/no/cert"), "{text}");
        // Case: no TLS, no files
        let http = Connect::new("http://broker:80").expect("a valid URL");
        assert!(http.with_ca_file("/no/such/file").open(&Line::new()).is_ok());
    }

    #[test]
    fn tokens_are_one_line_and_stay_hidden() {
        let connect = || Connect::new("http://broker:80").expect("a valid URL");
        let shown = format!("{:?}", connect().with_token(" abc.def.ghi\n").expect("a token"));
        assert!(!shown.contains("abc"), "{shown}");
        assert!(connect().with_token("two\nlines").is_err());
    }
}
