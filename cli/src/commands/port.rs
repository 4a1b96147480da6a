//! The port of a broker, from its flags: who is let in, TLS, and what pages of others may ask.
//!
//! Each flag has Gazette's name too, and Gazette's variable (gazette-spec 6.5).

use crate::{Error, size};
use broker::server::{MESSAGE_LEN_MAX, Settings, Tls};
use client::token::Keys;
use std::path::PathBuf;

/// How the port behaves.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Port")]
pub struct PortFlags {
    /// Keys in base64, separated by commas or spaces: each request must carry a bearer token that
    /// one of them signed. `AA==` among them lets in who shows no token, too.
    #[arg(long, visible_alias = "broker.auth-keys", value_name = "KEYS")]
    #[arg(env = "BROKER_AUTH_KEYS", hide_env_values = true)]
    auth_keys: Option<String>,

    /// The certificate of the port (PEM): with it the port speaks TLS.
    #[arg(long, visible_alias = "broker.server-cert-file", value_name = "FILE")]
    #[arg(env = "BROKER_SERVER_CERT_FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of that certificate (PEM).
    #[arg(long, visible_alias = "broker.server-cert-key-file", value_name = "FILE")]
    #[arg(env = "BROKER_SERVER_CERT_KEY_FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Certificates of those who sign clients (PEM): with them every client must show one.
    #[arg(long, visible_alias = "broker.server-ca-file", value_name = "FILE")]
    #[arg(env = "BROKER_SERVER_CA_FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,

    /// An origin whose pages may ask /v1/, such as https://dash.example; * is all. Repeatable.
    #[arg(long, visible_alias = "broker.allow-origin", value_name = "ORIGIN")]
    #[arg(env = "BROKER_ALLOW_ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// The largest gRPC message that is taken.
    #[arg(long, visible_alias = "broker.max-grpc-recv-size", value_name = "SIZE")]
    #[arg(env = "BROKER_MAX_GRPC_RECV_SIZE", value_parser = message_max)]
    max_message: Option<usize>,
}

/// A size of messages: at least that of the pieces that clients send.
fn message_max(text: &str) -> Result<usize, String> {
    const MIN: usize = 1 << 20;
    let size = size::parse(text).map_err(|error| error.to_string())?;
    match usize::try_from(size) {
        Ok(size @ MIN..) if size <= 1 << 30 => Ok(size),
        _ => Err("expected 1MiB to 1GiB".to_owned()),
    }
}

impl PortFlags {
    /// The settings that the flags mean. Reads the files.
    pub fn settings(&self) -> Result<Settings, Error> {
        // A variable that is set to nothing is one that is not set.
        let keys = self.auth_keys.as_deref().filter(|keys| !keys.is_empty());
        let keys = keys.map(str::parse::<Keys>).transpose().map_err(Error::Keys)?;
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::load(certificate, key, self.tls_client_ca.as_deref())?)
            }
            _ => None,
        };
        let message_max = self.max_message.unwrap_or(MESSAGE_LEN_MAX);
        Ok(Settings { keys, tls, origins: self.allow_origin.clone(), message_max })
    }
}

/// HOST:PORT or unix:///PATH, as far as it can be checked without the network.
pub fn address(text: &str) -> Result<String, String> {
    if text.strip_prefix("unix://").is_some_and(|path| path.starts_with('/') && path.len() > 1) {
        return Ok(text.to_owned());
    }
    let refused = || format!("expected HOST:PORT or unix:///PATH, such as 127.0.0.1:8080 ({text})");
    let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
    let is_host = !host.contains(|c: char| c.is_whitespace() || c == '/' || c == '@');
    match port.parse::<u16>() {
        Ok(_) if is_host && host.is_empty() => Ok(format!("0.0.0.0:{port}")),
        Ok(_) if is_host => Ok(text.to_owned()),
        _ => Err(refused()),
    }
}

/// A port as Gazette has it: a number, on all addresses of the machine, or unix:///PATH.
pub fn port(text: &str) -> Result<String, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok(format!("0.0.0.0:{port}")),
        Err(_) if text.starts_with("unix://") => address(text),
        Err(_) => Err(format!("expected a port or unix:///PATH ({text})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        port: PortFlags,
    }

    #[test]
    fn addresses_are_host_and_port_or_a_socket() {
        // Case: the text, what is listened on
        let cases = [
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("localhost:0", Some("localhost:0")),
            ("[::1]:8080", Some("[::1]:8080")),
            (":8080", Some("0.0.0.0:8080")),
            ("unix:///run/courant.sock", Some("unix:///run/courant.sock")),
            ("unix://run/courant.sock", None),
            ("unix:///", None),
            ("no address", None),
            ("8080", None),
            ("host:80800", None),
            ("http://host:80", None),
            ("two words:80", None),
        ];
        for (text, expected) in cases {
            assert_eq!(address(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn ports_are_those_of_gazette() {
        // Case: the text, what is listened on
        let cases = [
            ("8080", Some("0.0.0.0:8080")),
            ("unix:///run/gazette.sock", Some("unix:///run/gazette.sock")),
            ("80800", None),
            ("127.0.0.1:8080", None),
            ("tcp://10.0.0.1:8080", None),
        ];
        for (text, expected) in cases {
            assert_eq!(port(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn flags_have_gazettes_names_too() {
        // Case: the flags, and whether they are understood and can be used
        let cases: [(&[&str], bool, bool); 11] = [
            (&[], true, true),
            (&["--auth-keys", "c2VjcmV0"], true, true),
            (&["--broker.auth-keys", "c2VjcmV0,AA=="], true, true),
            (&["--auth-keys", ""], true, true),
            (&["--auth-keys", "not base64"], true, false),
            (&["--auth-keys", "AA=="], true, false),
            (&["--broker.server-cert-file", "/no/cert"], false, false),
            (
                &["--broker.server-cert-file=/no/c", "--broker.server-cert-key-file=/no/k"],
                true,
                false,
            ),
            (&["--broker.server-ca-file", "/no/ca"], false, false),
            (&["--broker.allow-origin", "https://a.example", "--allow-origin", "*"], true, true),
            (&["--broker.max-grpc-recv-size", "4194304"], true, true),
        ];
        for (flags, is_understood, is_usable) in cases {
            let line = ["courant"].iter().chain(flags);
            let parsed = Flags::try_parse_from(line);
            assert_eq!(parsed.is_ok(), is_understood, "{flags:?}");
            let settings = parsed.ok().map(|flags| flags.port.settings());
            assert_eq!(settings.is_some_and(|it| it.is_ok()), is_usable, "{flags:?}");
        }
        for (size, expected) in [("1MiB", true), ("5", false), ("2GiB", false)] {
            let parsed = Flags::try_parse_from(["courant", "--max-message", size]);
            assert_eq!(parsed.is_ok(), expected, "{size}");
        }
    }
}
