//! Tables for the rules of label sets and registers.

use super::*;

/// Names and values of a set.
type Pairs = &'static [(&'static str, &'static str)];

fn set(pairs: &[(&str, &str)]) -> LabelSet {
    LabelSet::new(pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect())
        .expect("a valid set")
}

#[test]
fn sets_are_checked_and_never_normalised() {
    let cases: [(Pairs, &str); 6] = [
        // Case: bounds and alphabets, with the path of the label.
        (&[("x", "")], "Labels[0].Name: invalid length (1; expected 2 <= length <= 64)"),
        (&[("aa", ""), ("b b", "")], "Labels[1].Name: not a valid token (b b)"),
        (&[("aa", "x,y")], "Labels[0].Value: not a valid value (x,y)"),
        // Case: order and uniqueness are by name, then value.
        (&[("bb", ""), ("aa", "")], "Labels[1]: labels must be unique and sorted (aa= after bb=)"),
        (
            &[("aa", "2"), ("aa", "2")],
            "Labels[1]: labels must be unique and sorted (aa=2 after aa=2)",
        ),
        // Case: an empty value stands alone.
        (
            &[("aa", ""), ("aa", "1")],
            "Labels[1]: label aa has an empty value beside non-empty ones",
        ),
    ];
    for (pairs, expected) in cases {
        let labels = pairs.iter().map(|(name, value)| Label::new(*name, *value)).collect();
        assert_eq!(LabelSet::new(labels).unwrap_err().to_string(), expected);
    }
}

#[test]
fn the_prefix_mark_belongs_in_selectors() {
    let label = Label { prefix: true, ..Label::new("name", "a/") };
    let invalid = LabelSet::new(vec![label.clone()]).unwrap_err();
    assert_eq!(invalid.to_string(), "Labels[0]: unexpected Prefix outside of a LabelSelector");
    assert!(LabelSet::for_selector(vec![label]).is_ok());
}

#[test]
fn values_are_found_by_name() {
    let labels = set(&[("aa", "1"), ("aa", "2"), ("cc", "")]);
    assert_eq!(labels.value_of("aa"), Some("1"));
    assert_eq!(labels.values_of("aa").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(labels.value_of("cc"), Some(""));
    // Case: names that sort before, between and after.
    for absent in ["a", "bb", "dd"] {
        assert_eq!(labels.value_of(absent), None);
    }
}

#[test]
fn labels_are_added_in_their_place() {
    let labels = set(&[("bb", "2")]);
    let labels = labels.with("bb", "1").unwrap().with("aa", "").unwrap().with("bb", "2").unwrap();
    assert_eq!(labels, set(&[("aa", ""), ("bb", "1"), ("bb", "2")]));
    assert_eq!(labels.clone().with_only("bb", "3").unwrap(), set(&[("aa", ""), ("bb", "3")]));
    assert_eq!(labels.clone().without("bb"), set(&[("aa", "")]));
    assert!(labels.with("aa", "1").is_err());
}

#[test]
fn union_replaces_the_values_of_each_name_given() {
    let registers = set(&[("aa", "1"), ("bb", "1"), ("bb", "2")]);
    let union = registers.union(&set(&[("bb", "3"), ("cc", "")]));
    assert_eq!(union, set(&[("aa", "1"), ("bb", "3"), ("cc", "")]));
    assert_eq!(registers.union(&LabelSet::default()), registers);
    assert_eq!(LabelSet::default().union(&registers), registers);
}

#[test]
fn subtract_removes_a_name_only_with_all_its_values() {
    let registers = set(&[("aa", "1"), ("bb", "1"), ("bb", "2")]);
    let cases: [(Pairs, Pairs); 4] = [
        // Case: the whole list.
        (&[("bb", "1"), ("bb", "2")], &[("aa", "1")]),
        // Case: a part of it, or another value, or another name: nothing happens.
        (&[("bb", "1")], &[("aa", "1"), ("bb", "1"), ("bb", "2")]),
        (&[("aa", "2")], &[("aa", "1"), ("bb", "1"), ("bb", "2")]),
        (&[("cc", "")], &[("aa", "1"), ("bb", "1"), ("bb", "2")]),
    ];
    for (other, expected) in cases {
        assert_eq!(registers.subtract(&set(other)), set(expected));
    }
}

#[test]
fn sets_survive_as_bytes() {
    let registers = set(&[("author", "a1"), ("bb", "")]);
    assert_eq!(LabelSet::from_bytes(&registers.to_bytes()), Ok(registers));
    assert_eq!(LabelSet::from_bytes(&[]), Ok(LabelSet::default()));
    assert!(LabelSet::from_bytes(&[0xff]).is_err());
}
