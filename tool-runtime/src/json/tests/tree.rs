//! Access, comparison, borrowing and `Debug` of a tree.

use std::borrow::Cow;

use serde_json::json;

use super::read;
use crate::json::Tree;

#[test]
fn pointers_lead_to_values() {
    let tree = read(r#"{"a": [1, {"b/c": 2, "d~e": 3, "": 4}], "0": 5}"#);
    for (pointer, expected) in [
        ("/a/0", Some(1)),
        ("/a/1/b~1c", Some(2)),
        ("/a/1/d~0e", Some(3)),
        ("/a/1/", Some(4)),
        ("/0", Some(5)),
        ("/a/2", None),
        ("/a/b", None),
        ("/b", None),
        ("a", None),
        ("/a/0/0", None),
    ] {
        assert_eq!(tree.pointer(pointer), expected.map(Tree::Int).as_ref(), "{pointer}");
    }
    assert_eq!(tree.pointer(""), Some(&tree));
}

#[test]
fn equality_is_that_of_json() {
    assert_eq!(read(r#"{"a":1,"b":2}"#), read(r#"{"b":2.0,"a":1e0}"#));
    assert_ne!(read(r#"{"a":1,"b":2}"#), read(r#"{"a":1}"#));
    assert_ne!(read("[1,2]"), read("[2,1]"));
    assert_ne!(read("1"), read("true"));
    assert_ne!(read("null"), read("0"));
}

#[test]
fn text_without_escapes_is_borrowed() {
    let tree = read(r#"{"plain": "text", "escaped": "a\tb"}"#);
    let members = tree.as_object().unwrap();
    assert!(members.iter().all(|(name, _)| matches!(name, Cow::Borrowed(_))));
    assert!(matches!(members[0].1, Tree::String(Cow::Borrowed("text"))));
    assert!(matches!(&members[1].1, Tree::String(Cow::Owned(text)) if text == "a\tb"));
}

#[test]
fn values_become_trees_by_the_same_rules() {
    let value = json!({"a": 5.0, "b": -0.0, "c": u64::MAX, "d": 0.5, "e": [null, true, "x"]});
    assert_eq!(Tree::from_value(&value), read(r#"{"a":5,"b":0,"c":18446744073709551615,"d":0.5,"e":[null,true,"x"]}"#));
    assert_eq!(Tree::from_value(&value).to_value()["a"], json!(5));
}

#[test]
fn debug_is_blank() {
    assert_eq!(format!("{:?}", read(r#"{"password": "hunter2"}"#)), "Tree(..)");
}
