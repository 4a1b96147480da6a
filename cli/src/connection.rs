//! How commands reach a broker: the flags that gazctl has for it.

use crate::{Error, seams, time};
use client::token::Keys;
use client::{Connect, Remote};
use std::path::PathBuf;
use std::time::Duration;

/// What --help shows flags under that do nothing; -h does not show them.
const WITHOUT_EFFECT: &str = "Taken for gazctl's sake, without effect";

/// The broker that is meant where none is named.
const DEFAULT: &str = "http://localhost:8080";

/// The broker that a command speaks to.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Broker")]
pub struct Connection {
    /// The broker's URL: http://HOST:PORT, https://HOST:PORT or unix:///PATH.
    #[arg(long = "broker.address", visible_alias = "broker", value_name = "URL", global = true)]
    #[arg(env = "BROKER_ADDRESS", default_value = DEFAULT, value_parser = broker)]
    address: String,

    /// The bearer token that requests carry.
    #[arg(long = "broker.auth-token", value_name = "TOKEN", global = true)]
    #[arg(env = "BROKER_AUTH_TOKEN", hide_env_values = true)]
    auth_token: Option<String>,

    /// Keys in base64, as the broker has them: each request gets a token signed with the first.
    #[arg(long = "broker.auth-keys", value_name = "KEYS", global = true)]
    #[arg(env = "BROKER_AUTH_KEYS", hide_env_values = true, conflicts_with = "auth_token")]
    auth_keys: Option<String>,

    /// The certificate that is shown to a broker that asks for one (PEM).
    #[arg(long = "broker.cert-file", value_name = "FILE", global = true)]
    #[arg(env = "BROKER_CERT_FILE", requires = "cert_key_file")]
    cert_file: Option<PathBuf>,

    /// The private key of that certificate (PEM).
    #[arg(long = "broker.cert-key-file", value_name = "FILE", global = true)]
    #[arg(env = "BROKER_CERT_KEY_FILE", requires = "cert_file")]
    cert_key_file: Option<PathBuf>,

    /// Certificates that are trusted instead of the system's (PEM).
    #[arg(long = "broker.trusted-ca-file", value_name = "FILE", global = true)]
    #[arg(env = "BROKER_TRUSTED_CA_FILE")]
    trusted_ca_file: Option<PathBuf>,

    /// No effect: one broker is spoken to, which passes requests on, so no routes are kept.
    #[arg(long = "broker.cache.size", value_name = "N", global = true, hide_short_help = true)]
    #[arg(env = "BROKER_CACHE_SIZE", hide_env = true, default_value_t = 0)]
    #[arg(hide_default_value = true, help_heading = WITHOUT_EFFECT)]
    _cache_size: usize,

    /// No effect, as the size.
    #[arg(long = "broker.cache.ttl", value_name = "DURATION", global = true)]
    #[arg(env = "BROKER_CACHE_TTL", hide_env = true, default_value = "1m")]
    #[arg(value_parser = time::duration, hide_short_help = true, hide_default_value = true)]
    #[arg(help_heading = WITHOUT_EFFECT)]
    _cache_ttl: Duration,

    /// No effect: a zone chooses between replicas, of which one broker has one.
    #[arg(long = "zone", global = true, env = "ZONE", hide_env = true, default_value = "local")]
    #[arg(hide_default_value = true, hide_short_help = true, help_heading = WITHOUT_EFFECT)]
    _zone: String,
}

/// A broker's URL, as far as it can be checked without the network.
pub fn broker(url: &str) -> Result<String, String> {
    Remote::check_url(url).map_err(|error| error.to_string())?;
    Ok(url.to_owned())
}

impl Connection {
    /// A client of that broker. Nothing is asked of it yet.
    pub fn remote(&self) -> Result<Remote, Error> {
        Ok(Remote::connect(&self.connect_to(&self.address)?)?)
    }

    /// The same, but at `url` where no other was named than the usual one.
    pub fn remote_or(&self, url: Option<&str>) -> Result<Remote, Error> {
        let address = self.named().or(url).unwrap_or(DEFAULT);
        Ok(Remote::connect(&self.connect_to(address)?)?)
    }

    /// The broker's URL, where another one than the usual is named.
    pub fn named(&self) -> Option<&str> {
        (self.address != DEFAULT).then_some(&*self.address)
    }

    /// The broker's URL, as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn connect_to(&self, address: &str) -> Result<Connect, Error> {
        let mut connect = Connect::new(address)?;
        // A variable that is set to nothing is one that is not set.
        if let Some(token) = self.auth_token.as_deref().filter(|token| !token.is_empty()) {
            connect = connect.with_token(token)?;
        }
        if let Some(keys) = self.auth_keys.as_deref().filter(|keys| !keys.is_empty()) {
            let keys: Keys = keys.parse().map_err(Error::Keys)?;
            connect = connect.with_keys(keys, seams::clock());
        }
        if let Some(file) = &self.trusted_ca_file {
            connect = connect.with_ca_file(file);
        }
        if let (Some(certificate), Some(key)) = (&self.cert_file, &self.cert_key_file) {
            connect = connect.with_identity_files(certificate, key);
        }
        Ok(connect)
    }
}
