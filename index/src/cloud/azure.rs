//! Azure Blob Storage, by an account's key or by a tenant's directory.

use super::http::{Https, retries};
use super::{Cloud, Surroundings};
use crate::store::url::StoreUrl;
use object_store::azure::MicrosoftAzureBuilder;

/// Opens `azure://container/prefix/`: the account of `AZURE_ACCOUNT_NAME`, with the key of
/// `AZURE_ACCOUNT_KEY`. The names that Azure's own tools have, `AZURE_STORAGE_ACCOUNT` and
/// `AZURE_STORAGE_KEY`, are taken too. Without a key: see [`identified`].
///
/// With `AZURE_STORAGE_USE_EMULATOR` it is a container of the emulator, at
/// `AZURITE_BLOB_STORAGE_URL`.
pub(super) fn open(url: &StoreUrl, around: &Surroundings) -> Result<Cloud, String> {
    let account = around.first_of(&["AZURE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]);
    let key = around.first_of(&["AZURE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"]);
    let is_emulator = around.get("AZURE_STORAGE_USE_EMULATOR").is_some_and(|value| value == "true");
    let mut builder = builder(&url.host, around)?.with_use_emulator(is_emulator);
    match account {
        Some(account) => builder = builder.with_account(account),
        None if is_emulator => {}
        None => return Err("no account is known: set AZURE_ACCOUNT_NAME".to_owned()),
    }
    builder = match key {
        Some(key) => builder.with_access_key(key),
        None if is_emulator => builder,
        None => identified(builder, around.get("AZURE_TENANT_ID"), around),
    };
    built(builder)
}

/// Opens `azure-ad://tenant/account/container/prefix/`: see [`identified`].
pub(super) fn open_by_tenant(url: &StoreUrl, around: &Surroundings) -> Result<Cloud, String> {
    let missing = "the URL names no account and container";
    let (account, container) = url.account_and_container().ok_or_else(|| missing.to_owned())?;
    let builder = builder(container, around)?.with_account(account);
    built(identified(builder, Some(&url.host), around))
}

/// Credentials of a directory, in this order: a client and its secret (`AZURE_CLIENT_ID`,
/// `AZURE_CLIENT_SECRET`), a workload's identity (`AZURE_FEDERATED_TOKEN_FILE`), the machine's.
fn identified(
    builder: MicrosoftAzureBuilder,
    tenant: Option<&str>,
    around: &Surroundings,
) -> MicrosoftAzureBuilder {
    let secret = around.get("AZURE_CLIENT_SECRET");
    // object_store would take it before a secret, which Azure's own libraries do not.
    let workload = around.get("AZURE_FEDERATED_TOKEN_FILE").filter(|_| secret.is_none());
    type Set = fn(MicrosoftAzureBuilder, &str) -> MicrosoftAzureBuilder;
    let given: [(Option<&str>, Set); 6] = [
        (tenant, |builder, value| builder.with_tenant_id(value)),
        (around.get("AZURE_CLIENT_ID"), |builder, value| builder.with_client_id(value)),
        (secret, |builder, value| builder.with_client_secret(value)),
        (workload, |builder, value| builder.with_federated_token_file(value)),
        (around.get("AZURE_AUTHORITY_HOST"), |builder, value| builder.with_authority_host(value)),
        (around.get("IDENTITY_ENDPOINT"), |builder, value| builder.with_msi_endpoint(value)),
    ];
    given.into_iter().fold(builder, |builder, (value, set)| match value {
        Some(value) => set(builder, value),
        None => builder,
    })
}

fn builder(container: &str, around: &Surroundings) -> Result<MicrosoftAzureBuilder, String> {
    let builder = MicrosoftAzureBuilder::new()
        .with_container_name(container)
        .with_retry(retries())
        .with_http_connector(Https::new()?);
    Ok(match around.get("AZURE_STORAGE_ENDPOINT") {
        Some(endpoint) => builder.with_endpoint(endpoint.to_owned()).with_allow_http(true),
        None => builder,
    })
}

fn built(builder: MicrosoftAzureBuilder) -> Result<Cloud, String> {
    builder.build().map(Cloud::new).map_err(|error| error.to_string())
}
