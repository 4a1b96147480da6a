//! Which pages of other origins may ask: CORS, by a list that the broker was given.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderValue, ORIGIN, VARY,
};

/// The origins whose pages may ask.
#[derive(Debug)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Origins as browsers write them: `https://HOST[:PORT]`. `*` is all of them.
    pub fn new(origins: Vec<String>) -> Self {
        let bare = |origin: String| origin.trim_end_matches('/').to_owned();
        Origins(origins.into_iter().map(bare).collect())
    }

    /// The origin of a request, if it is one of these.
    pub fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let is_allowed = |allowed: &String| allowed == "*" || origin == allowed.as_str();
        self.0.iter().any(is_allowed).then(|| origin.clone())
    }
}

/// Lets a page of this origin see the answer. Without one a browser shows it nothing.
pub fn put(headers: &mut HeaderMap, origin: Option<HeaderValue>) {
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = origin else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let allowed = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Cache-Control, Content-Type, Pragma"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    for (name, value) in allowed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_origins_of_the_list_are_let_in() {
        // Case: the list, the origin of the page, and whether it is let in
        let cases: [(&[&str], Option<&str>, bool); 6] = [
            (&[], Some("https://a.example"), false),
            (&["https://a.example"], Some("https://a.example"), true),
            (&["https://a.example/"], Some("https://a.example"), true),
            (&["https://a.example"], Some("https://a.example.evil"), false),
            (&["*"], Some("https://b.example"), true),
            (&["*"], None, false),
        ];
        for (list, origin, expected) in cases {
            let origins = Origins::new(list.iter().map(ToString::to_string).collect());
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_str(origin).expect("valid"));
            }
            let allowed = origins.allowed(&headers);
            assert_eq!(allowed.is_some(), expected, "{list:?} {origin:?}");
            let mut answer = HeaderMap::new();
            put(&mut answer, allowed);
            assert_eq!(answer.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), expected);
        }
    }
}
