//! Tables for matching and for the text form.

use super::*;
use proptest::prelude::*;

fn selector(text: &str) -> Selector {
    text.parse().unwrap_or_else(|invalid| panic!("{text}: {invalid}"))
}

fn labels(pairs: &[(&str, &str)]) -> LabelSet {
    LabelSet::new(pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect())
        .expect("valid labels")
}

#[test]
fn matching() {
    let journal = Journal::new("foo/bar").expect("valid");
    let labels = labels(&[("env", "prod"), ("tag", "a"), ("tag", "b/c")]);
    let cases = [
        // Case: nothing is asked.
        ("", true),
        // Case: names AND, values OR, an empty value is presence.
        ("env=prod", true),
        ("env=test", false),
        ("env in (test,prod)", true),
        ("env=prod,tag=a", true),
        ("env=prod,tag=x", false),
        ("tag=b/c", true),
        ("tag", true),
        ("other", false),
        // Case: one excluded label is enough; an absent one is no hindrance.
        ("!other", true),
        ("!tag", false),
        ("env!=test", true),
        ("tag notin (x,a)", false),
        ("env=prod,tag!=a", false),
        // Case: the name, whole or in part.
        ("name=foo/bar", true),
        ("name=foo/ba", false),
        ("name:prefix=foo/", true),
        ("name:prefix=fo", true),
        ("name:prefix=bar/", false),
        ("name=foo/bar,env=test", false),
        ("name!=foo/bar", false),
        ("tag:prefix=b/", true),
        ("tag:prefix=c", false),
        ("name", true),
    ];
    for (text, expected) in cases {
        assert_eq!(selector(text).matches(&labels, &journal), expected, "{text}");
    }
}

#[test]
fn no_registers_match_everything() {
    let check = selector("author=a1");
    assert!(check.matches_registers(&LabelSet::default()));
    assert!(check.matches_registers(&labels(&[("author", "a1"), ("other", "")])));
    assert!(!check.matches_registers(&labels(&[("author", "zz")])));
    assert!(!check.matches_registers(&labels(&[("other", "")])));
}

#[test]
fn the_legacy_prefix_is_a_prefix_of_the_name() {
    let cases = [
        ("prefix=foo/", "name:prefix=foo/"),
        ("prefix=foo/,name=bar/baz", "name=bar/baz,name:prefix=foo/"),
        ("prefix!=foo/", "name:prefix notin (foo/)"),
        // Case: one value both ways; any name.
        ("prefix=foo/,name=foo/", "name:prefix=foo/"),
        ("prefix=foo/,name", "name"),
        ("env=prod", "env=prod"),
    ];
    for (text, expected) in cases {
        assert_eq!(selector(text).without_legacy_prefix(), selector(expected), "{text}");
    }
    assert!(selector("prefix=foo/").check_legacy_prefix().is_ok());
    let invalid = selector("env,prefix!=foo").check_legacy_prefix().unwrap_err();
    assert_eq!(invalid.to_string(), "Exclude: prefix must end in '/' (foo)");
}

#[test]
fn exact_names_are_told_from_the_rest() {
    assert_eq!(selector("name in (a/bc,d/ef)").exact_names(), Some(vec!["a/bc", "d/ef"]));
    for scanned in ["", "env=prod", "name", "name:prefix=a/", "name=a/bc,name:prefix=d/"] {
        assert_eq!(selector(scanned).exact_names(), None, "{scanned}");
    }
}

#[test]
fn text_is_read_and_written_canonically() {
    let cases = [
        ("a1=b", "a1=b"),
        ("a1==b", "a1=b"),
        ("a1 = b", "a1=b"),
        ("a1!=b", "a1!=b"),
        ("a1 != b , c1", "c1,a1!=b"),
        ("a1", "a1"),
        ("a1=", "a1"),
        ("!a1", "!a1"),
        ("! a1", "!a1"),
        ("a1!=", "!a1"),
        ("a1 in (c, b)", "a1 in (b,c)"),
        ("a1 in (b)", "a1=b"),
        ("a1 notin (b,c)", "a1 notin (b,c)"),
        ("a1 not in (b,c)", "a1 notin (b,c)"),
        ("in in (in)", "in=in"),
        ("b1=2,b1=1,a1", "a1,b1 in (1,2)"),
        ("a1=b,", "a1=b"),
        ("a1=b, a1=b", "a1=b"),
        ("a1=b=c", "a1=b=c"),
        ("a1 in (=b)", "a1 in (=b)"),
        ("name:prefix=foo/", "name:prefix=foo/"),
        ("name:prefix = foo", "name:prefix=foo"),
        ("name:prefix != foo/", "name:prefix!=foo/"),
        ("app.gazette.dev/tag=x%20y", "app.gazette.dev/tag=x%20y"),
        ("", ""),
        (" ", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(selector(text).to_string(), expected, "{text}");
        assert_eq!(selector(expected), selector(text), "{text}");
    }
}

#[test]
fn text_that_is_no_selector_is_refused() {
    let cases = [
        ("=b", "not a label selector (=b; unexpected at \"=b\")"),
        ("a1=b c", "not a label selector (a1=b c; unexpected at \"c\")"),
        ("a1 in b", "not a label selector (a1 in b; unexpected at \"b\")"),
        ("a1 in (b", "not a label selector (a1 in (b; unexpected at \"\")"),
        ("a1,,b1", "not a label selector (a1,,b1; unexpected at \",b1\")"),
        ("a1:suffix=b", "not a label selector (a1:suffix=b; unexpected at \":suffix=b\")"),
        ("!a1=b", "not a label selector (!a1=b; unexpected at \"=b\")"),
        ("a=b", "Include.Labels[0].Name: invalid length (1; expected 2 <= length <= 64)"),
        ("aa,aa=b", "Include.Labels[1]: label aa has an empty value beside non-empty ones"),
    ];
    for (text, expected) in cases {
        let invalid = text.parse::<Selector>().unwrap_err();
        assert_eq!(invalid.to_string(), expected, "{text}");
    }
}

prop_compose! {
    fn any_half()(
        groups in prop::collection::btree_map(
            r"[a-zA-Z0-9_+/.\u{e4}\u{4e16}-]{2,6}",
            prop::collection::btree_map(r"[a-z0-9=%_+/.\u{e4}\u{4e16}-]{1,4}", any::<bool>(), 0..3),
            0..4,
        )
    ) -> LabelSet {
        let mut labels = Vec::new();
        for (name, values) in groups {
            if values.is_empty() {
                labels.push(Label::new(name.as_str(), ""));
            }
            let label = |(value, prefix)| Label { name: name.clone(), value, prefix };
            labels.extend(values.into_iter().map(label));
        }
        LabelSet::for_selector(labels).expect("maps are sorted and unique")
    }
}

proptest! {
    #[test]
    fn every_selector_survives_as_text(include in any_half(), exclude in any_half()) {
        let selector = Selector { include, exclude };
        let text = selector.to_string();
        prop_assert_eq!(text.parse::<Selector>(), Ok(selector), "{}", text);
    }

    #[test]
    fn every_selector_survives_the_wire(include in any_half(), exclude in any_half()) {
        let selector = Selector { include, exclude };
        let message = gazette::LabelSelector::from(selector.clone());
        prop_assert_eq!(Selector::try_from(message), Ok(selector));
    }

    #[test]
    fn no_text_panics(text in "[a-c=!,:() ]{0,12}") {
        if let Ok(selector) = text.parse::<Selector>() {
            prop_assert_eq!(selector.to_string().parse::<Selector>(), Ok(selector));
        }
    }
}
