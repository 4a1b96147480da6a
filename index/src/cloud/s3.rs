//! Amazon S3, and what speaks as it does.

use super::http::{Https, retries};
use super::profile::Profile;
use super::{Cloud, Surroundings};
use crate::store::url::StoreUrl;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::{Attribute, ClientOptions, HeaderMap, HeaderValue};

/// The region where an endpoint is given and no region: what speaks S3 elsewhere has none, and
/// takes this one.
const REGION_OF_ENDPOINTS: &str = "us-east-1";

/// Opens `s3://bucket/prefix/`. Credentials are those of the argument `profile`, or else, in this
/// order: keys in the environment, the profile of `AWS_PROFILE` or `default`, a web identity, those
/// of the container, those of the machine.
pub(super) fn open(url: &StoreUrl, around: &Surroundings) -> Result<Cloud, String> {
    let asked = url.argument("profile").or_else(|| around.get("AWS_PROFILE"));
    let profile = Profile::read(asked.unwrap_or("default"), asked.is_some(), around)?;
    let endpoint = url.argument("endpoint").map(str::to_owned).or_else(|| {
        around.first_of(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]).map(str::to_owned)
    });
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&url.host)
        .with_region(region(url, endpoint.is_some(), &profile, around)?)
        // An endpoint means path-style (gazette-spec 3.8), and so does a bucket whose name is no
        // part of a host's.
        .with_virtual_hosted_style_request(endpoint.is_none() && is_host_part(&url.host))
        // Some that speak S3 do not know of deleting many at once, and we never do.
        .with_disable_bulk_delete(true)
        .with_retry(retries())
        .with_http_connector(Https::new()?)
        .with_client_options(ClientOptions::new().with_default_headers(headers(url)?));
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(with_scheme(endpoint)).with_allow_http(true);
    }
    builder = encrypted(builder, url)?;
    builder = with_credentials(builder, url, &profile, around);
    let store = builder.build().map_err(|error| error.to_string())?;
    let mut cloud = Cloud::new(store);
    if let Some(class) = url.argument("storageclass") {
        cloud.attributes.insert(Attribute::StorageClass, class.to_owned().into());
    }
    Ok(cloud)
}

fn region(
    url: &StoreUrl,
    has_endpoint: bool,
    profile: &Profile,
    around: &Surroundings,
) -> Result<String, String> {
    let given = url
        .argument("region")
        .or_else(|| around.first_of(&["AWS_REGION", "AWS_DEFAULT_REGION"]))
        .or_else(|| profile.get("region"))
        .or(has_endpoint.then_some(REGION_OF_ENDPOINTS));
    let missing = "no region is known: give the argument region, or set AWS_REGION";
    given.map(str::to_owned).ok_or_else(|| missing.to_owned())
}

fn is_host_part(bucket: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    bucket.chars().all(is_fit)
}

/// Without a scheme an endpoint speaks TLS.
fn with_scheme(endpoint: &str) -> String {
    let has_scheme = endpoint.contains("://");
    if has_scheme { endpoint.to_owned() } else { format!("https://{endpoint}") }
}

/// What goes with each request, under its signature.
fn headers(url: &StoreUrl) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if let Some(acl) = url.argument("acl") {
        let acl = HeaderValue::from_str(acl).map_err(|_| format!("invalid acl {acl:?}"))?;
        headers.insert("x-amz-acl", acl);
    }
    Ok(headers)
}

fn encrypted(builder: AmazonS3Builder, url: &StoreUrl) -> Result<AmazonS3Builder, String> {
    let key = url.argument("ssekmskeyid");
    let Some(kind) = url.argument("sse").or(key.map(|_| "aws:kms")) else { return Ok(builder) };
    if !matches!(kind, "AES256" | "aws:kms" | "aws:kms:dsse") {
        return Err(format!("unknown sse {kind}: it is AES256, aws:kms or aws:kms:dsse"));
    }
    let set = |builder: AmazonS3Builder, name: &str, value: &str| {
        let key: Key = name.parse().expect("object_store knows its own names");
        builder.with_config(key, value)
    };
    let builder = set(builder, "aws_server_side_encryption", kind);
    Ok(key.map_or(builder.clone(), |id| set(builder, "aws_sse_kms_key_id", id)))
}

fn with_credentials(
    builder: AmazonS3Builder,
    url: &StoreUrl,
    profile: &Profile,
    around: &Surroundings,
) -> AmazonS3Builder {
    let of_profile = keys(|name| profile.get(&name.to_ascii_lowercase()));
    let of_environment = || keys(|name| around.get(name));
    let found = match url.argument("profile") {
        Some(_) => of_profile,
        None => of_environment().or(of_profile),
    };
    if let Some([id, secret, token]) = found {
        let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        return if token.is_empty() { builder } else { builder.with_token(token) };
    }
    let of_elsewhere = [
        (Key::WebIdentityTokenFile, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (Key::RoleArn, "AWS_ROLE_ARN"),
        (Key::RoleSessionName, "AWS_ROLE_SESSION_NAME"),
        (Key::StsEndpoint, "AWS_ENDPOINT_URL_STS"),
        (Key::ContainerCredentialsRelativeUri, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        (Key::ContainerCredentialsFullUri, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        (Key::ContainerAuthorizationTokenFile, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        (Key::MetadataEndpoint, "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
    ];
    of_elsewhere.into_iter().fold(builder, |builder, (key, name)| match around.get(name) {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}

/// A key, its secret, and its token, which may be empty.
fn keys<'v>(get: impl Fn(&str) -> Option<&'v str>) -> Option<[&'v str; 3]> {
    let token = get("AWS_SESSION_TOKEN").unwrap_or_default();
    Some([get("AWS_ACCESS_KEY_ID")?, get("AWS_SECRET_ACCESS_KEY")?, token])
}
