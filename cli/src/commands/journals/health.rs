//! `courant journals store-health`: whether a broker can use a store.

use crate::{Error, output};
use client::Remote;
use protocol::StoreUrl;
use protocol::request::FragmentStoreHealthRequest;

const EXAMPLES: &str = "\
Examples:
  courant journals store-health file:///
  courant journals store-health 's3://bucket/prefix/?region=eu-west-1'
  courant journals store-health --check-delete-prefix probe/ gs://bucket/prefix/

Exit code 1 when the store can't be used; the line on standard error says why.";

/// Check whether the broker can write to, read from and list a store of fragments.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct StoreHealth {
    /// The store's URL, as specs have it.
    #[arg(value_name = "STORE_URL", value_parser = store)]
    store: StoreUrl,

    /// Also try to delete, below this prefix of the store: empty, or ending in /.
    #[arg(long, value_name = "PREFIX")]
    check_delete_prefix: Option<String>,
}

fn store(url: &str) -> Result<StoreUrl, String> {
    StoreUrl::parse(url).map_err(|invalid| invalid.to_string())
}

impl StoreHealth {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let url = self.store.to_string();
        let request = FragmentStoreHealthRequest {
            store: self.store,
            check_delete: self.check_delete_prefix,
        };
        match remote.store_health(request).await? {
            None => output::print(&format!("{url}: healthy\n")),
            Some(why) => Err(Error::Unhealthy(url, why)),
        }
    }
}
