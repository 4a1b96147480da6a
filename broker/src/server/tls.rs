//! TLS of the port: by rustls with ring, from files in PEM that may change while it serves.

use super::limits::PAPERS_LOOK;
use index::blocking::off_thread;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// What is offered, the first that the client offers too is taken: in the order of Gazette
/// (gazette-spec 1.1). gRPC clients offer the second alone.
const PROTOCOLS: [&[u8]; 2] = [b"http/1.1", HTTP2];
const HTTP2: &[u8] = b"h2";

/// TLS that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("can't read {what} from {}: {source}", file.display())]
    File { what: &'static str, file: PathBuf, source: pem::Error },
    #[error("no certificate in {}: expected PEM", .0.display())]
    Empty(PathBuf),
    #[error("no private key in {}: expected PEM, not encrypted", .0.display())]
    NoKey(PathBuf),
    #[error("the certificate of {} and its key can't be used: {source}", file.display())]
    Unusable { file: PathBuf, source: rustls::Error },
    #[error("the certificates of {} can't be trusted: {detail}", file.display())]
    Untrusted { file: PathBuf, detail: String },
}

/// The certificate that a port shows, and whom it lets in by theirs. Cheap to clone.
///
/// Files that change are read again, so that a certificate is renewed without a restart; while they
/// can't be used, what was read last goes on.
#[derive(Clone)]
pub struct Tls(Arc<Papers>);

/// The files, and what was made of them.
struct Papers {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    acceptor: TlsAcceptor,
    /// The files as they were when they were read for it.
    read: Stamps,
    /// As they were when that failed last.
    failed: Option<Stamps>,
    /// When the files were looked at last.
    looked: Instant,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Shows the chain of `certificate`, whose key is in `key`. With a `client_ca` only clients
    /// with a certificate of its are let in.
    pub fn load(
        certificate: &Path,
        key: &Path,
        client_ca: Option<&Path>,
    ) -> Result<Self, TlsError> {
        // Before they are read: what changes meanwhile is read again.
        let read = Stamps::of(certificate, key, client_ca);
        let acceptor = acceptor(certificate, key, client_ca)?;
        let state = State { acceptor, read, failed: None, looked: Instant::now() };
        Ok(Tls(Arc::new(Papers {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            client_ca: client_ca.map(Path::to_owned),
            state: Mutex::new(state),
        })))
    }

    /// The server's side of the handshake.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        if self.0.is_to_be_looked_at() {
            let papers = self.0.clone();
            off_thread(move || papers.look()).await;
        }
        let acceptor = self.0.state().acceptor.clone();
        acceptor.accept(stream).await
    }
}

impl Papers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the papers panics")
    }

    /// Whether nobody looked for a while. Who gets true is the one to do it.
    fn is_to_be_looked_at(&self) -> bool {
        let mut state = self.state();
        let is_due = state.looked.elapsed() >= PAPERS_LOOK;
        if is_due {
            state.looked = Instant::now();
        }
        is_due
    }

    /// Reads the files if they have changed. Blocks.
    fn look(&self) {
        let (certificate, client_ca) = (&self.certificate, self.client_ca.as_deref());
        let stamps = Stamps::of(certificate, &self.key, client_ca);
        if stamps == self.state().read {
            return;
        }
        let read = acceptor(certificate, &self.key, client_ca);
        let mut state = self.state();
        match read {
            Ok(acceptor) => {
                (state.acceptor, state.read, state.failed) = (acceptor, stamps, None);
                tracing::info!(certificate = %certificate.display(), "TLS files were read again");
            }
            // Tried again each time, and told once: one of two files may be new and the other not.
            Err(error) => {
                if state.failed.as_ref() != Some(&stamps) {
                    tracing::warn!(%error, "changed TLS files can't be used: the old ones go on");
                }
                state.failed = Some(stamps);
            }
        }
    }
}

/// What tells whether files have changed; `None` of one that can't be looked at.
#[derive(Debug, PartialEq, Eq)]
struct Stamps([Option<Stamp>; 3]);

#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl Stamps {
    fn of(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Self {
        let stamp = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            let modified = (meta.mtime(), meta.mtime_nsec());
            Some(Stamp { inode: meta.ino(), len: meta.len(), modified })
        };
        Stamps([Some(certificate), Some(key), client_ca].map(|path| stamp(path?)))
    }
}

/// What shakes hands by these files. Blocks.
fn acceptor(
    certificate: &Path,
    key: &Path,
    client_ca: Option<&Path>,
) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates("the certificate", certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|source| match source {
        pem::Error::NoItemsFound => TlsError::NoKey(key.to_owned()),
        source => TlsError::File { what: "the key", file: key.to_owned(), source },
    })?;
    let unusable = |source| TlsError::Unusable { file: certificate.to_owned(), source };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => builder.with_client_cert_verifier(verifier(file, provider)?),
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(unusable)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Whether client and port agreed on HTTP/2. Otherwise it is HTTP/1.1.
pub fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::File { what, file: file.to_owned(), source };
    let found = CertificateDer::pem_file_iter(file).map_err(failed)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if found.is_empty() { Err(TlsError::Empty(file.to_owned())) } else { Ok(found) }
}

fn verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let untrusted = |detail: String| TlsError::Untrusted { file: file.to_owned(), detail };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("the client CA", file)? {
        roots.add(certificate).map_err(|error| untrusted(error.to_string()))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map_err(|error| untrusted(error.to_string()))
}
