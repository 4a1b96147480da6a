//! Google Cloud Storage.

use super::http::{Https, retries};
use super::{Cloud, Surroundings};
use crate::store::url::StoreUrl;
use object_store::gcp::GoogleCloudStorageBuilder;

/// Opens `gs://bucket/prefix/`. Credentials are, in this order: the file that
/// `GOOGLE_APPLICATION_CREDENTIALS` names, that of `gcloud auth application-default login`, those
/// of the machine (which is what a workload identity is).
///
/// Without the key of a service account everything works, and a URL is signed by asking the cloud
/// to: that needs the permission `iam.serviceAccounts.signBlob`.
///
/// `STORAGE_EMULATOR_HOST` names a server to ask in Google's place, as Google's libraries have it.
pub(super) fn open(url: &StoreUrl, around: &Surroundings) -> Result<Cloud, String> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&url.host)
        .with_retry(retries())
        // An object with `Content-Encoding: gzip` is undone by the cloud for who does not take it.
        .with_http_connector(Https::taking_gzip()?);
    let emulator = around.get("STORAGE_EMULATOR_HOST");
    if let Some(host) = emulator {
        builder = builder.with_base_url(&with_scheme(host)).with_skip_signature(true);
    }
    let file = around.get("GOOGLE_APPLICATION_CREDENTIALS");
    if let Some(path) = file {
        // An emulator takes no tokens. Its key is there to sign URLs, and no other kind of file
        // says of itself that no token is to be asked for.
        builder = match emulator {
            Some(_) => builder.with_service_account_path(path),
            None => builder.with_application_credentials(path),
        };
    }
    let store = builder.build().map_err(|error| told(file, &error))?;
    Ok(Cloud::new(store))
}

/// What can't be used of Google's kinds of credentials is told with its file, and what helps.
fn told(file: Option<&str>, error: &object_store::Error) -> String {
    let mut text = error.to_string();
    if let Some(file) = file.filter(|file| !text.contains(file)) {
        text = format!("{file}: {text}");
    }
    let is_other_kind = text.contains("unknown variant");
    let remedy = "; give the key of a service account, or run where the machine has an identity";
    if is_other_kind { text + remedy } else { text }
}

fn with_scheme(host: &str) -> String {
    if host.contains("://") { host.to_owned() } else { format!("http://{host}") }
}
