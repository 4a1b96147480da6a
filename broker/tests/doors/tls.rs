//! TLS at the port: who trusts whom, and which protocol is agreed on.

use crate::http;
use crate::world::{World, until};
use broker::server::{Settings, Tls};
use client::{Connect, Error, Remote};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Certificates in files: a CA, one of its for servers, one of its for clients, and one of another.
struct Papers {
    dir: TempDir,
    ours: CertifiedIssuer<'static, KeyPair>,
}

impl Papers {
    fn new() -> Papers {
        let papers = Papers { dir: TempDir::new().unwrap(), ours: authority() };
        std::fs::write(papers.file("ca"), papers.ours.pem()).unwrap();
        let server = ExtendedKeyUsagePurpose::ServerAuth;
        papers.issue("server", &papers.ours, server);
        papers.issue("client", &papers.ours, ExtendedKeyUsagePurpose::ClientAuth);
        papers.issue("stranger", &authority(), ExtendedKeyUsagePurpose::ClientAuth);
        papers
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn issue(
        &self,
        name: &str,
        issuer: &CertifiedIssuer<'_, KeyPair>,
        usage: ExtendedKeyUsagePurpose,
    ) {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        std::fs::write(self.file(name), certificate.pem()).unwrap();
        std::fs::write(self.file(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn settings(&self, client_ca: Option<&str>) -> Settings {
        let client_ca = client_ca.map(|name| self.file(name));
        let (certificate, key) = (self.file("server"), self.file("server.key"));
        let tls = Tls::load(&certificate, &key, client_ca.as_deref()).unwrap();
        Settings { tls: Some(tls), ..Settings::default() }
    }

    fn identified(&self, connect: Connect, name: &str) -> Connect {
        connect.with_identity_files(self.file(name), self.file(&format!("{name}.key")))
    }

    /// A connector of a client that offers these protocols.
    fn connector(&self, protocols: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.file("ca")).unwrap()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test]
async fn certificates_decide_who_is_let_in() {
    let papers = Papers::new();
    type With = fn(&Papers, Connect) -> Connect;
    let trusting: With = |papers, connect| connect.with_ca_file(papers.file("ca"));
    let known: With =
        |papers, connect| papers.identified(connect, "client").with_ca_file(papers.file("ca"));
    let strange: With =
        |papers, connect| papers.identified(connect, "stranger").with_ca_file(papers.file("ca"));
    let doubting: With = |papers, connect| connect.with_ca_file(papers.file("stranger"));
    // Case: whether the port asks for certificates, the client, and whether they speak
    let cases = [
        (None, trusting, true),
        (None, doubting, false),
        (None, known, true),
        (Some("ca"), known, true),
        (Some("ca"), trusting, false),
        (Some("ca"), strange, false),
    ];
    for (at, (client_ca, with, expected)) in cases.into_iter().enumerate() {
        let world = World::start(papers.settings(client_ca)).await;
        assert!(world.url.starts_with("https://"), "{}", world.url);
        let probed = Remote::connect(&with(&papers, world.connect())).unwrap().probe().await;
        match probed {
            Ok(()) => assert!(expected, "case {at}"),
            Err(error) => {
                assert!(!expected && matches!(error, Error::Unreachable(_)), "case {at}: {error}");
            }
        }
        world.stop().await;
    }
}

/// The certificate that the port shows at this moment.
async fn shown(world: &World, connector: &TlsConnector) -> CertificateDer<'static> {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = connector.connect(name, world.tcp().await).await.unwrap();
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    certificates[0].clone().into_owned()
}

#[tokio::test]
async fn files_that_change_are_read_again_and_bad_ones_are_not_taken() {
    let papers = Papers::new();
    let world = World::start(papers.settings(None)).await;
    let connector = papers.connector(&["http/1.1"]);
    let in_file = |name: &str| CertificateDer::from_pem_file(papers.file(name)).unwrap();
    let renew = |name: &str, to: &str| std::fs::rename(papers.file(name), papers.file(to)).unwrap();
    let first = in_file("server");
    assert_eq!(shown(&world, &connector).await, first);
    // Case: what is there is no certificate, then has no key of its, then is not there.
    let server = ExtendedKeyUsagePurpose::ServerAuth;
    papers.issue("renewed", &papers.ours, server.clone());
    let next = in_file("renewed");
    std::fs::write(papers.file("server"), "nonsense").unwrap();
    looked_at(&world, &connector, &first).await;
    renew("renewed", "server");
    looked_at(&world, &connector, &first).await;
    renew("server", "renewed");
    looked_at(&world, &connector, &first).await;
    // Case: both are new.
    renew("renewed", "server");
    renew("renewed.key", "server.key");
    until("the new one is shown", async || shown(&world, &connector).await == next).await;
    // Case: once more, by writing over them.
    papers.issue("server", &papers.ours, server);
    let last = in_file("server");
    until("the last one is shown", async || shown(&world, &connector).await == last).await;
    world.stop().await;
}

/// Goes on until the port has looked at its files, and sees that it shows `expected` meanwhile.
async fn looked_at(world: &World, connector: &TlsConnector, expected: &CertificateDer<'_>) {
    for _ in 0..15 {
        assert_eq!(shown(world, connector).await, *expected);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_client_without_tls_is_not_understood() {
    let papers = Papers::new();
    let world = World::start(papers.settings(None)).await;
    let plain = world.url.replace("https://", "http://");
    let error = Remote::new(&plain).unwrap().probe().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
    // Whoever types http:// is told.
    let answer = world.ask("GET", "/logs/app", "").await;
    let expected = (400, "this port speaks TLS: use https://\n");
    assert_eq!((answer.status, answer.body.as_str()), expected);
    // The port goes on with those who speak it.
    let connect = world.connect().with_ca_file(papers.file("ca"));
    Remote::connect(&connect).unwrap().probe().await.unwrap();
    world.stop().await;
}

#[tokio::test]
async fn protocols_are_agreed_on_as_gazette_does() {
    let papers = Papers::new();
    let world = World::start(papers.settings(None)).await;
    world.create("logs/app", b"hello").await;
    // Case: what the client offers, what is taken
    let cases: [(&[&str], Option<&str>); 4] = [
        (&["h2", "http/1.1"], Some("http/1.1")),
        (&["h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ];
    for (offered, expected) in cases {
        let connector = papers.connector(offered);
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = connector.connect(name, world.tcp().await).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(agreed.as_deref(), expected.map(str::as_bytes), "{offered:?}");
        if expected != Some("h2") {
            let answer = http::ask(stream, "GET", "/logs/app", "").await;
            assert_eq!((answer.status, answer.body.as_str()), (206, "hello"));
        }
    }
    world.stop().await;
}

#[test]
fn files_that_are_no_papers_are_named() {
    let papers = Papers::new();
    std::fs::write(papers.file("empty"), "").unwrap();
    // Case: certificate, key, CA of the clients, what is said
    let cases = [
        ("none", "server.key", None, "can't read the certificate from "),
        ("empty", "server.key", None, "no certificate in "),
        ("server", "none", None, "can't read the key from "),
        ("server", "server", None, "no private key in "),
        ("server", "empty", None, "no private key in "),
        ("server", "client.key", None, "can't be used"),
        ("server", "server.key", Some("empty"), "no certificate in "),
        ("server", "server.key", Some("none"), "can't read the client CA from "),
    ];
    for (certificate, key, client_ca, expected) in cases {
        let client_ca = client_ca.map(|name| papers.file(name));
        let loaded = Tls::load(&papers.file(certificate), &papers.file(key), client_ca.as_deref());
        let text = loaded.unwrap_err().to_string();
        assert!(text.contains(expected), "{certificate} {key}: {text}");
        assert!(text.contains(papers.dir.path().to_str().unwrap()), "{text}");
    }
}
