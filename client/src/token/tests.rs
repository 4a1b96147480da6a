//! Tokens that are taken, and those that are not.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use std::time::UNIX_EPOCH;

const NOW: u64 = 1_750_000_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn keys(text: &str) -> Keys {
    text.parse().expect("valid keys")
}

/// A token as anybody with the secret can write one.
fn token(algorithm: hmac::Algorithm, head: &str, body: &str, secret: &[u8]) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(body));
    let tag = hmac::sign(&hmac::Key::new(algorithm, secret), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn hs256(body: &str) -> String {
    token(hmac::HMAC_SHA256, r#"{"alg":"HS256"}"#, body, b"secret")
}

#[test]
fn keys_are_a_list() {
    // Case: the text, whether it opens the door to those without a token, or what is wrong
    let cases = [
        ("c2VjcmV0", Ok(false)),
        ("c2VjcmV0,b3RoZXI=", Ok(false)),
        (" c2VjcmV0\nb3RoZXI ", Ok(false)),
        ("c2VjcmV0 AA==", Ok(true)),
        ("AA==,c2VjcmV0", Ok(true)),
        ("AA==", Err(Refused::NoKey)),
        ("", Err(Refused::NoKey)),
        ("secret!", Err(Refused::NotBase64)),
    ];
    for (text, expected) in cases {
        let found = text.parse::<Keys>().map(|keys| keys.is_open());
        assert_eq!(found, expected, "{text:?}");
    }
    let shown = format!("{:?}", keys("c2VjcmV0"));
    assert_eq!(shown, "Keys { len: 1, is_open: false }");
}

#[test]
fn what_is_signed_is_verified() {
    let selectors = ["", "name=a/logs", "name:prefix=a/,!tag", "one in (a,b),two"];
    for selector in selectors {
        let selector: Selector = selector.parse().expect("a valid selector");
        let claims = Claims { capability: Capability::READ, selector, expires: at(NOW + 60) };
        let token = keys("c2VjcmV0").sign(&claims, at(NOW));
        // Case: the key may stand anywhere in the list
        assert_eq!(keys("b3RoZXI=,c2VjcmV0").verify(&token, at(NOW)), Ok(claims));
        assert_eq!(keys("b3RoZXI=").verify(&token, at(NOW)), Err(Refused::Signature));
    }
}

#[test]
fn tokens_of_other_signers_are_read() {
    // Case: the claims, and what they are taken for
    let expires = format!(r#""exp":{}"#, NOW + 60);
    let cases = [
        (format!(r#"{{{expires}}}"#), Ok((0, ""))),
        (format!(r#"{{"cap":8,"sel":null,{expires}}}"#), Ok((8, ""))),
        (
            format!(
                r#"{{"cap":4294967295,{expires},"sel":{{"include":{{"labels":[
                {{"name":"name","value":"a/b"}}]}},"exclude":{{"labels":null}}}}}}"#
            ),
            Ok((u32::MAX, "name=a/b")),
        ),
        (
            format!(
                r#"{{{expires},"sel":{{"exclude":{{"labels":[{{"name":"zz","value":""}},
                {{"name":"aa","value":"1"}}]}}}}}}"#
            ),
            Ok((0, "aa!=1,!zz")),
        ),
        (
            format!(
                r#"{{{expires},"sel":{{"include":{{"labels":[
                {{"name":"prefix","value":"a/"}}]}}}}}}"#
            ),
            Ok((0, "name:prefix=a/")),
        ),
        (format!(r#"{{"cap":2,"exp":{}.5,"sub":"me"}}"#, NOW + 60), Ok((2, ""))),
        // Case: clocks may be five seconds apart
        (format!(r#"{{"exp":{}}}"#, NOW - 4), Ok((0, ""))),
        (format!(r#"{{"exp":{}}}"#, NOW - 5), Err("expired")),
        (format!(r#"{{"iat":{},{expires}}}"#, NOW + 5), Ok((0, ""))),
        (format!(r#"{{"iat":{},{expires}}}"#, NOW + 6), Err("claim iat")),
        (format!(r#"{{"nbf":{},{expires}}}"#, NOW + 6), Err("claim nbf")),
        (r#"{"cap":8}"#.to_owned(), Err("claim exp")),
        // Case: a time that is no number is not as good as none
        (r#"{"exp":"9999999999"}"#.to_owned(), Err("can't be read")),
        (format!(r#"{{"nbf":"0",{expires}}}"#), Err("can't be read")),
        (format!(r#"{{"cap":-1,{expires}}}"#), Err("can't be read")),
        (
            format!(r#"{{"sel":{{"include":{{"labels":[{{"name":"x"}}]}}}},{expires}}}"#),
            Err("can't be read"),
        ),
        // Case: a misspelled selector is not one of everything
        (format!(r#"{{"sel":{{"inclde":null}},{expires}}}"#), Err("unknown field")),
        (format!(r#"{{"sel":{{"include":{{"label":[]}}}},{expires}}}"#), Err("unknown field")),
        ("[]".to_owned(), Err("can't be read")),
    ];
    for (body, expected) in cases {
        let found = keys("c2VjcmV0").verify(&hs256(&body), at(NOW));
        match (found, expected) {
            (Ok(claims), Ok((capability, selector))) => {
                assert_eq!(claims.capability, Capability(capability), "{body}");
                assert_eq!(claims.selector.to_string(), selector, "{body}");
            }
            (Err(refused), Err(why)) => {
                assert!(refused.to_string().contains(why), "{body}: {refused}");
            }
            (found, expected) => panic!("{body}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn only_the_two_algorithms_are_taken() {
    let body = format!(r#"{{"exp":{}}}"#, NOW + 60);
    let (short, long) = (hmac::HMAC_SHA256, hmac::HMAC_SHA384);
    // Case: how it is signed, what its head says, and whether it is taken
    let cases = [
        (short, r#"{"alg":"HS256","typ":"JWT"}"#, None),
        (long, r#"{"alg":"HS384"}"#, None),
        (hmac::HMAC_SHA512, r#"{"alg":"HS512"}"#, Some("HS512")),
        (short, r#"{"alg":"none"}"#, Some("none")),
        // Case: the head lies about the signature
        (short, r#"{"alg":"HS384"}"#, Some("signature")),
        (short, r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, Some("crit")),
        (short, "head", Some("not JSON")),
    ];
    for (algorithm, head, expected) in cases {
        let found = keys("c2VjcmV0").verify(&token(algorithm, head, &body, b"secret"), at(NOW));
        match (found, expected) {
            (Ok(_), None) => {}
            (Err(refused), Some(why)) => assert!(refused.to_string().contains(why), "{refused}"),
            (found, _) => panic!("{head}: {found:?}"),
        }
    }
    for garbage in ["", "a", "a.b", "a.b.c", "....", "e30.e30."] {
        assert!(keys("c2VjcmV0").verify(garbage, at(NOW)).is_err(), "{garbage}");
    }
}

#[test]
fn a_changed_token_is_refused() {
    let token = keys("c2VjcmV0").sign_for(Capability::READ, at(NOW));
    for place in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        // The last letter of a part has bits that say nothing, and must be zero.
        assert!(keys("c2VjcmV0").verify(&changed, at(NOW)).is_err(), "{changed}");
    }
}

#[test]
fn each_call_needs_one_capability() {
    // Case: the call, what it needs, and how long a token for it lasts
    let cases = [
        ("protocol.Journal", "List", Some((2, 3600))),
        ("protocol.Journal", "Apply", Some((4, 60))),
        ("protocol.Journal", "Read", Some((8, 3600))),
        ("protocol.Journal", "ListFragments", Some((8, 3600))),
        ("protocol.Journal", "FragmentStoreHealth", Some((8, 3600))),
        ("protocol.Journal", "Append", Some((16, 3600))),
        ("protocol.Journal", "Replicate", Some((32, 3600))),
        ("courant.v1.Courant", "Heads", Some((2, 3600))),
        ("courant.v1.Courant", "Status", Some((2, 3600))),
        ("courant.v1.Courant", "Create", Some((4, 60))),
        ("courant.v1.Courant", "Delete", Some((4, 60))),
        ("courant.v1.Courant", "Prune", Some((4, 60))),
        ("courant.v1.Courant", "Templates", Some((2, 3600))),
        ("courant.v1.Courant", "PutTemplate", Some((4, 60))),
        ("courant.v1.Courant", "DeleteTemplate", Some((4, 60))),
        ("courant.v1.Courant", "Append", Some((16, 3600))),
        ("courant.v1.Courant", "Sync", Some((16, 3600))),
        ("protocol.Journal", "Delete", None),
        ("grpc.health.v1.Health", "Check", None),
    ];
    for (service, method, expected) in cases {
        let needed = Capability::of_call(service, method);
        let found = needed.map(|needed| {
            let expires = Claims::of_call(needed, at(NOW)).expires;
            (needed.0, expires.duration_since(at(NOW)).expect("later").as_secs())
        });
        assert_eq!(found, expected, "{service}/{method}");
    }
}
