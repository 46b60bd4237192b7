//! Edits of compiled schemas, and the hash of a definition.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::ToolContext;
use crate::capability::{InjectedFrom, Requirement};
use crate::json::digest;
use crate::schema::edit::add_min_properties;
use crate::schema::{check_foreign, definition_hash, publish_require_any};
use crate::tool::{Execution, Hash, NoSchemaMode, Redaction, Schema, ToolEffect, ToolName, ToolSpec};

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

fn spec() -> ToolSpec {
    ToolSpec {
        description: "Now.".into(),
        input_schema: schema(&json!({"type": "object", "properties": {"n": {"maximum": u64::MAX}}})),
        output_schema: schema(&json!({"type": "string"})),
        redaction: Redaction { allow: vec!["$".to_owned()], ..Redaction::default() },
        ..ToolSpec::plain("core__now")
    }
}

#[test]
fn the_hash_covers_all_but_title_and_itself() {
    let hash = definition_hash(&spec(), &[]);
    let changed = |change: fn(&mut ToolSpec)| {
        let mut spec = spec();
        change(&mut spec);
        definition_hash(&spec, &[]) != hash
    };
    assert!(!changed(|spec| spec.title = Some(Arc::from("Time"))));
    assert!(!changed(|spec| spec.definition_hash = Hash([1; 32])));
    assert!(changed(|spec| spec.name = ToolName::parse("core__then").unwrap()));
    assert!(changed(|spec| spec.description = "Then.".into()));
    assert!(changed(|spec| spec.summary.push("Says now.".into())));
    assert!(changed(|spec| spec.input_schema = schema(&json!({"type": "object"}))));
    assert!(changed(|spec| spec.output_schema = schema(&json!({"type": "number"}))));
    assert!(changed(|spec| spec.effect = ToolEffect::StateChange));
    assert!(changed(|spec| spec.redaction.allow.clear()));
    assert!(changed(|spec| spec.redaction.model.push("a".to_owned())));
    assert!(changed(|spec| spec.execution = Execution::Client));
    assert!(changed(|spec| spec.tags.push("a".into())));
    assert!(changed(|spec| spec.also.push("a".into())));
    assert!(changed(|spec| spec.sensitive.push("a".to_owned())));
    assert!(changed(|spec| spec.evidence = [("a".to_owned(), "core__list".to_owned())].into()));
    assert!(changed(|spec| spec.require_any.push("a".to_owned())));
    assert!(changed(|spec| spec.idempotent = true));
    assert!(changed(|spec| spec.no_schema = Some(NoSchemaMode::ApproveEach)));
    assert!(
        definition_hash(&ToolSpec { no_schema: Some(NoSchemaMode::ApproveEach), ..spec() }, &[])
            != definition_hash(&ToolSpec { no_schema: Some(NoSchemaMode::RejectEffects), ..spec() }, &[])
    );
}

#[test]
fn the_hash_covers_what_the_tool_borrows() {
    let borrowed = |name, effect, source| Requirement { name, effect, source, ..Requirement::of::<ToolContext>() };
    let clock = borrowed("Clock", ToolEffect::ReadOnly, InjectedFrom::Capability);
    let mail = borrowed("Mail", ToolEffect::StateChange, InjectedFrom::Connection("mail"));
    let hash = definition_hash(&spec(), &[clock, mail]);
    assert_eq!(definition_hash(&spec(), &[mail, clock]), hash);
    let context = borrowed("ToolContext", ToolEffect::ReadOnly, InjectedFrom::Context);
    assert_eq!(definition_hash(&spec(), &[mail, clock, context]), hash);
    for other in [
        vec![clock],
        vec![clock, Requirement { effect: ToolEffect::ExternalSideEffect, ..mail }],
        vec![clock, Requirement { source: InjectedFrom::Connection("post"), ..mail }],
        vec![clock, Requirement { source: InjectedFrom::Capability, ..mail }],
    ] {
        assert_ne!(definition_hash(&spec(), &other), hash);
    }
}

#[test]
fn the_hash_is_that_of_canonical_json_as_others_write_it() {
    let spec = ToolSpec {
        sensitive: vec!["\u{20ac}".to_owned(), "a\n".to_owned()],
        evidence: [("n".to_owned(), "core__list".to_owned())].into(),
        require_any: vec!["n".to_owned()],
        summary: vec!["Says “{n}”".into(), "Says".into()],
        tags: vec!["money".into()],
        no_schema: Some(NoSchemaMode::ApproveEach),
        idempotent: true,
        redaction: Redaction { model: vec!["b".to_owned()], prepare: vec!["c".to_owned()], ..spec().redaction },
        ..spec()
    };
    let mut definition = serde_json::to_value(&spec).unwrap();
    let members = definition.as_object_mut().unwrap();
    members.remove("definition_hash");
    members.insert("borrows".to_owned(), json!([]));
    // RFC 8785 has doubles only; the library leaves the conversion to its caller.
    definition["input_schema"]["properties"]["n"]["maximum"] = json!(18_446_744_073_709_551_615.0_f64);
    assert_eq!(digest(serde_jcs::to_string(&definition).unwrap()), definition_hash(&spec, &[]));
}
