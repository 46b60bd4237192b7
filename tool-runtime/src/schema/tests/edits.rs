//! Edits of compiled schemas, and the hash of a definition.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::{add_min_properties, check_foreign, definition_hash, publish_require_any, set_property_default};
use crate::tool::{Execution, Hash, Redaction, Schema, ToolEffect, ToolName, ToolSpec};

fn schema(value: &Value) -> Schema {
    check_foreign(value).unwrap()
}

#[test]
fn require_any_is_published_when_it_names_every_optional_argument() {
    let tool = schema(&json!({
        "type": "object", "properties": {"a": {"type": "string"}, "b": {}, "c": {}}, "required": ["a"],
    }));
    for (names, least) in
        [(&["b", "c"][..], json!(2)), (&["c", "b"], json!(2)), (&["b"], Value::Null), (&[], Value::Null)]
    {
        assert_eq!(publish_require_any(&tool, names).to_value()["minProperties"], least, "{names:?}");
    }
    assert_eq!(add_min_properties(&tool, 3).to_value()["minProperties"], json!(3));
}

#[test]
fn defaults_are_checked_and_make_a_property_optional() {
    let tool = schema(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}));
    let with = set_property_default(&tool, "a", &json!("UTC")).unwrap();
    assert_eq!(
        with.as_str(),
        r#"{"properties":{"a":{"default":"UTC","type":"string"}},"required":[],"type":"object"}"#
    );
    assert_eq!(set_property_default(&tool, "a", &json!(1)).unwrap_err().pointer, "/properties/a/default");
    assert_eq!(set_property_default(&tool, "b", &json!(1)).unwrap_err().pointer, "/properties");
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: ToolName::parse("core__now").unwrap(),
        title: None,
        description: "Now.".into(),
        input_schema: schema(&json!({"type": "object", "properties": {"n": {"maximum": u64::MAX}}})),
        output_schema: schema(&json!({"type": "string"})),
        effect: ToolEffect::ReadOnly,
        redaction: Redaction { allow: vec!["$".to_owned()], ..Redaction::default() },
        execution: Execution::Server,
        tags: Vec::new(),
        definition_hash: Hash([0; 32]),
    }
}

#[test]
fn the_hash_covers_all_but_title_and_itself() {
    let hash = definition_hash(&spec());
    let changed = |change: fn(&mut ToolSpec)| {
        let mut spec = spec();
        change(&mut spec);
        definition_hash(&spec) != hash
    };
    assert!(!changed(|spec| spec.title = Some(Arc::from("Time"))));
    assert!(!changed(|spec| spec.definition_hash = Hash([1; 32])));
    assert!(changed(|spec| spec.name = ToolName::parse("core__then").unwrap()));
    assert!(changed(|spec| spec.description = "Then.".into()));
    assert!(changed(|spec| spec.input_schema = schema(&json!({"type": "object"}))));
    assert!(changed(|spec| spec.output_schema = schema(&json!({"type": "number"}))));
    assert!(changed(|spec| spec.effect = ToolEffect::StateChange));
    assert!(changed(|spec| spec.redaction.allow.clear()));
    assert!(changed(|spec| spec.redaction.model.push("a".to_owned())));
    assert!(changed(|spec| spec.execution = Execution::Client));
    assert!(changed(|spec| spec.tags.push("a".into())));
    // Computed by other software over the text that RFC 8785 gives.
    assert_eq!(hash.to_string(), "795eca63855b9b75a0a6d5ab882eb57459f91e2313f5450f7fa904b5b8375d44");
}
