//! Projections of values that fit, break or exceed their schema.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::{Value, json};

use crate::redact::{ProjectError, Projector};

/// A map whose members come from a closure.
struct By<F>(F);

impl<F: Fn(&mut Vec<(&'static str, Value)>)> Serialize for By<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Vec::new();
        (self.0)(&mut members);
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in members {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

fn projector() -> Projector {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 0, "maximum": 255},
            "names": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
            "note": {"type": ["string", "null"]},
        },
        "required": ["id"],
    });
    let paths = ["id", "names", "place.town", "note"].map(ToOwned::to_owned);
    Projector::compile(&paths, &[], &schema).unwrap()
}

#[track_caller]
fn shows(members: &[(&'static str, Value)], expected: Option<&str>) {
    let value = By(|out: &mut Vec<_>| out.extend_from_slice(members));
    match (projector().project(&value, 10_000), expected) {
        (Ok(projected), Some(expected)) => assert_eq!(projected.shown.get(), expected),
        (Err(ProjectError::OutputInvalid(_)), None) => {}
        (got, _) => panic!("{members:?}: {got:?}"),
    }
}

#[test]
fn members_of_the_allowlist_are_shown() {
    let place = json!({"town": "Oslo", "secret": 1});
    shows(&[("id", json!(1)), ("other", json!("x")), ("place", place)], Some(r#"{"id":1,"place":{"town":"Oslo"}}"#));
    shows(
        &[("id", json!(255)), ("names", json!(["a"])), ("note", Value::Null)],
        Some(r#"{"id":255,"names":["a"],"note":null}"#),
    );
    shows(&[("id", json!(0)), ("place", Value::Null)], Some(r#"{"id":0}"#));
}

#[test]
fn output_that_breaks_its_schema_is_refused() {
    let id = || ("id", json!(1));
    for members in [
        vec![],
        vec![("note", json!("no id"))],
        vec![("id", json!(256))],
        vec![("id", json!(-1))],
        vec![("id", json!(1.5))],
        vec![("id", json!("1"))],
        vec![("id", json!(null))],
        vec![("id", json!([1]))],
        vec![("id", json!([]))],
        vec![id(), ("note", json!([]))],
        vec![("id", json!({"value": 1}))],
        vec![id(), id()],
        vec![id(), ("names", json!("a"))],
        vec![id(), ("names", json!([1]))],
        vec![id(), ("place", json!("Oslo"))],
        vec![id(), ("place", json!({}))],
        vec![id(), ("note", json!(true))],
    ] {
        shows(&members, None);
    }
}

struct Endless(u8);

impl Serialize for Endless {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => {
                let mut seq = serializer.serialize_seq(None)?;
                seq.serialize_element(self)?;
                seq.end()
            }
            1 => serializer.serialize_some(self),
            2 => serializer.serialize_newtype_struct("Endless", self),
            3 => serializer.serialize_newtype_variant("Endless", 0, "a", self),
            _ => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("a", self)?;
                map.end()
            }
        }
    }
}

#[test]
fn endless_values_are_refused() {
    let any = ["$"].map(ToOwned::to_owned);
    let deep = [["a"; 200].join(".")];
    for how in 0..3 {
        let projected = Projector::without_schema(&any, &[]).project(&Endless(how), 10_000);
        assert!(matches!(projected, Err(ProjectError::OutputInvalid(_))), "{how}");
    }
    for how in 3..5 {
        let projected = Projector::without_schema(&deep, &[]).project(&Endless(how), 10_000);
        assert!(matches!(projected, Err(ProjectError::OutputInvalid(_))), "{how}");
    }
}

#[test]
fn a_flattened_map_cannot_stand_for_a_member() {
    #[derive(serde::Serialize)]
    struct Flat {
        id: u32,
        #[serde(flatten)]
        more: BTreeMap<String, u32>,
    }
    let value = Flat { id: 1, more: BTreeMap::from([("id".to_owned(), 99)]) };
    assert!(projector().project(&value, 1000).is_err());
}

#[test]
fn what_the_allowlist_empties_is_dropped_and_what_was_empty_stays() {
    let paths = ["id", "place.town", "places.town"].map(ToOwned::to_owned);
    let projector = Projector::without_schema(&paths, &[]);
    for (value, expected) in [
        (json!({"id": 1, "place": {"secret": 2}, "places": [{"secret": 3}]}), r#"{"id":1}"#),
        (json!({"id": 1, "place": {}, "places": []}), r#"{"id":1,"place":{},"places":[]}"#),
        (json!({"places": [{"secret": 3}, {"town": "Oslo"}]}), r#"{"places":[{"town":"Oslo"}]}"#),
        (json!({"secret": 3}), "{}"),
    ] {
        assert_eq!(projector.project(&value, 10_000).unwrap().shown.get(), expected, "{value}");
    }
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused() {
    let schema = |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
    let paths = ["a".to_owned()];
    let projector = Projector::compile(&paths, &[], &schema("^x")).unwrap();
    assert!(projector.project(&json!({"a": "xy"}), 100).is_ok());
    assert!(matches!(projector.project(&json!({"a": "y"}), 100), Err(ProjectError::OutputInvalid(_))));
    // Without an error here, an output that breaks the pattern would be shown.
    assert!(Projector::compile(&paths, &[], &schema("(")).is_err());
}

/// The form in which `pydantic` writes the schema of a list of models.
fn referring() -> Value {
    json!({
        "$defs": {
            "Item": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-z]+$"},
                    "secret": {"type": "string"},
                    "at": {"$ref": "#/$defs/Place", "description": "Where it is."},
                },
            },
            "Place": {"type": "object", "properties": {"town": {"type": "string"}, "kind": {"$ref": "#/$defs/Kind"}}},
            "Kind": {"type": "string", "enum": ["home", "work"]},
            "Node": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "below": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
            },
        },
        "type": "object",
        "required": ["result"],
        "properties": {
            "result": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "best": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]},
            "tree": {"$ref": "#/$defs/Node"},
        },
    })
}

#[test]
fn references_are_followed() {
    let paths = ["result.name", "result.at.kind", "best.name", "tree.id"].map(ToOwned::to_owned);
    let projector = Projector::compile(&paths, &[], &referring()).unwrap();
    let value = |name: &str| {
        json!({
            "result": [{"name": name, "secret": "s", "at": {"town": "Oslo", "kind": "home"}}],
            "best": {"name": "b", "secret": "s"},
            "tree": {"id": 1, "below": [{"id": 2}]},
        })
    };
    let shown = projector.project(&value("a"), 10_000).unwrap().shown;
    let shown: Value = serde_json::from_str(shown.get()).unwrap();
    let result = json!([{"name": "a", "at": {"kind": "home"}}]);
    assert_eq!(shown, json!({"result": result, "best": {"name": "b"}, "tree": {"id": 1}}));
    // The rules of the definition apply.
    assert!(matches!(projector.project(&value("A"), 10_000), Err(ProjectError::OutputInvalid(_))));
    assert!(projector.project(&json!({"result": [{"name": 1}]}), 10_000).is_err());
    let schema = projector.shown_schema(&referring());
    let item = &schema["properties"]["result"]["items"];
    assert_eq!((&item["required"], &item["additionalProperties"]), (&json!(["name"]), &json!(false)));
    assert_eq!(item["properties"]["at"]["description"], "Where it is.");
    let text = schema.to_string();
    assert!(!text.contains("$ref") && !text.contains("secret") && !text.contains("town"), "{text}");
}

#[test]
fn rules_of_a_definition_hold_with_other_rules_next_to_the_reference() {
    let count = json!({"type": "integer", "minimum": 0});
    let base = json!({"type": "object", "properties": {"count": count, "secret": {"type": "string"}}});
    let kind = json!({"kind": {"type": "string", "maxLength": 3}});
    for schema in [
        json!({"$defs": {"Base": base}, "$ref": "#/$defs/Base", "required": ["count"], "type": "object"}),
        // Both have `properties`.
        json!({"$defs": {"Base": base}, "$ref": "#/$defs/Base", "properties": kind}),
        json!({"type": "object", "allOf": [base, {"properties": kind}]}),
        json!({"properties": {"list": {"allOf": [{"type": "array", "items": base}, {"items": {"properties": kind}}]}}}),
    ] {
        let (path, of_list) = match schema["properties"].get("list") {
            Some(_) => ("list.count", true),
            None => ("count", false),
        };
        let value = |value: Value| if of_list { json!({"list": [value]}) } else { value };
        let projector = Projector::compile(&[path.to_owned()], &[], &schema).unwrap();
        let shown = projector.project(&value(json!({"count": 1, "secret": "s"})), 1000).unwrap().shown;
        assert_eq!(serde_json::from_str::<Value>(shown.get()).unwrap(), value(json!({"count": 1})));
        for wrong in [json!(-1), json!("1")] {
            let wrong = projector.project(&value(json!({"count": wrong})), 1000);
            assert!(matches!(wrong, Err(ProjectError::OutputInvalid(_))), "{schema}: {wrong:?}");
        }
    }
    let schema = json!({"$defs": {"Base": base}, "$ref": "#/$defs/Base", "properties": kind});
    let projector = Projector::compile(&["kind".to_owned()], &[], &schema).unwrap();
    assert!(projector.project(&json!({"kind": "long"}), 1000).is_err());
}

/// A map with integer keys has its values under a pattern.
#[test]
fn the_values_of_a_map_in_all_of_are_checked() {
    let by = json!({"type": "object", "patternProperties": {"^\\d+$": {"type": "string", "maxLength": 2}},
        "additionalProperties": false});
    let schema = json!({"allOf": [{"type": "object", "properties": {"by": by}}, {"required": ["by"]}]});
    let projector = Projector::compile(&["by.*".to_owned()], &[], &schema).unwrap();
    assert!(projector.project(&json!({"by": {"1": "x"}}), 1000).is_ok());
    assert!(projector.project(&json!({"by": {"1": "long"}}), 1000).is_err());
}

#[test]
fn a_reference_that_leads_back_is_named() {
    for (path, part) in [
        ("tree.below.id", "goes through the reference `#/$defs/Node`, which leads back to itself"),
        ("tree.below", "goes through the reference `#/$defs/Node`"),
        ("result.nam", "did you mean `result.name`?"),
        ("result", "`result.at.kind`, `result.at.town`, `result.name`, `result.secret`"),
    ] {
        let problems = Projector::compile(&[path.to_owned()], &[], &referring()).unwrap_err();
        assert!(problems[0].to_string().contains(part), "{}", problems[0]);
    }
}
