//! Where credentials are looked for, and what is told when there is not enough of them.

mod identities;

use super::*;

fn around(variables: &[(&str, &str)]) -> Surroundings {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn opened(url: &str, variables: &[(&str, &str)]) -> Result<Cloud, String> {
    let url = StoreUrl::parse(url).expect("a valid URL");
    open(&url, &around(variables)).map_err(|error| error.to_string())
}

/// The URL that is signed for an object, which says who signs and where the object is.
async fn signed(url: &str, variables: &[(&str, &str)]) -> String {
    let cloud = opened(url, variables).expect("there is enough");
    let key = object_store::path::Path::from("a/key=1");
    let ttl = std::time::Duration::from_secs(60);
    cloud.signer.signed_url(reqwest::Method::GET, &key, ttl).await.expect("it is signed").into()
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "of-env"), ("AWS_SECRET_ACCESS_KEY", "s")];

#[tokio::test]
async fn s3_is_asked_where_and_as_its_url_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("credentials");
    let text = "[default]\naws_access_key_id=of-default\naws_secret_access_key=s\n\
                [named]\naws_access_key_id=of-named\naws_secret_access_key=s\nregion=eu-west-3\n";
    std::fs::write(&path, text).expect("it is written");
    let path = path.to_str().expect("it is text");
    let file = ("AWS_SHARED_CREDENTIALS_FILE", path);
    let region = ("AWS_REGION", "eu-north-1");
    // Case: URL, variables, how the signed URL begins, and whose key signs where
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, &'a str);
    let cases: Vec<Case> = vec![
        (
            "s3://bucket/",
            vec![KEYS[0], KEYS[1], region, file],
            "https://bucket.s3.eu-north-1.amazonaws.com/a/key%3D1?",
            "of-env",
        ),
        // Case: a bucket whose name is no part of a host's.
        (
            "s3://my.bucket/?region=us-west-2",
            KEYS.to_vec(),
            "https://s3.us-west-2.amazonaws.com/my.bucket/a/key%3D1?",
            "us-west-2",
        ),
        (
            "s3://bucket/?endpoint=http://127.0.0.1:9000/",
            KEYS.to_vec(),
            "http://127.0.0.1:9000/bucket/a/key%3D1?",
            "us-east-1",
        ),
        (
            "s3://bucket/?endpoint=store.example",
            KEYS.to_vec(),
            "https://store.example/bucket/a/key%3D1?",
            "of-env",
        ),
        // Case: files of profiles.
        ("s3://bucket/", vec![region, file], "https://bucket.s3.eu-north-1.", "of-default"),
        (
            "s3://bucket/?profile=named",
            vec![KEYS[0], KEYS[1], file],
            "https://bucket.s3.eu-west-3.",
            "of-named",
        ),
        (
            "s3://bucket/",
            vec![("AWS_PROFILE", "named"), file],
            "https://bucket.s3.eu-west-3.",
            "of-named",
        ),
    ];
    for (url, variables, begin, says) in cases {
        let signed = signed(url, &variables).await;
        assert!(signed.starts_with(begin) && signed.contains(says), "{url}: {signed}");
    }
}

#[tokio::test]
async fn azure_is_asked_as_its_account() {
    let variables = [("AZURE_ACCOUNT_NAME", "account"), ("AZURE_ACCOUNT_KEY", "a2V5")];
    let signed = signed("azure://container/", &variables).await;
    assert!(signed.starts_with("https://account.blob.core.windows.net/container/a/key=1?"));
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let secret = [("AZURE_CLIENT_ID", "i"), ("AZURE_CLIENT_SECRET", "s")];
    let endpoint = "s3://bucket/?endpoint=http://h";
    // Case: URL, variables, what the error says; nothing where it is opened
    type Case<'a> = (String, &'a [(&'a str, &'a str)], Option<&'a str>);
    let cases: Vec<Case> = vec![
        ("s3://bucket/".into(), &KEYS, Some("give the argument region, or set AWS_REGION")),
        (format!("{endpoint}&profile=none"), &[], Some("there is no profile none")),
        (format!("{endpoint}&sse=rot13"), &[], Some("unknown sse rot13")),
        (format!("{endpoint}&acl=a%0Ab"), &[], Some("invalid acl")),
        (format!("{endpoint}&acl=private&storageclass=STANDARD_IA"), &[], None),
        (format!("{endpoint}&sse=aws:kms&ssekmskeyid=id"), &[], None),
        (format!("{endpoint}&sse=AES256"), &[], None),
        ("azure://container/".into(), &[], Some("set AZURE_ACCOUNT_NAME")),
        ("azure-ad://tenant/account/".into(), &secret, Some("no account and container")),
        ("azure-ad://tenant/account/container/".into(), &secret, None),
        ("azure-ad://tenant/account/container/".into(), &[], None),
        (
            "gs://bucket/".into(),
            &[("GOOGLE_APPLICATION_CREDENTIALS", "/none/key.json")],
            Some("/none/key.json"),
        ),
    ];
    for (url, variables, expected) in cases {
        match (opened(&url, variables), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.contains(expected), "{url}: {error}");
                assert!(error.starts_with(&format!("store {url}: ")), "{error}");
            }
            (found, expected) => panic!("{url}: {:?} and not {expected:?}", found.err()),
        }
    }
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", around(&[("AWS_SECRET_ACCESS_KEY", "hidden")]));
    assert!(shown.contains("AWS_SECRET_ACCESS_KEY") && !shown.contains("hidden"), "{shown}");
}
