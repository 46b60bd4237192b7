//! `assert_catalog_ok!` finds each way in which the schema and the parser of a tool's arguments disagree.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tool_runtime::catalog::CatalogBuilder;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::testing::{disagreements, harness};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError, assert_catalog_ok, tool};

use office_tools as _;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Line {
    /// How many.
    #[serde(alias = "qty")]
    count: u32,
}

/// A member with a second name.
#[tool(name = "bad__alias", effect = read_only, redact = ["$"])]
fn alias(
    /// The line of the order.
    line: Line,
) -> Result<u32, ToolError> {
    Ok(line.count)
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// How many.
    #[serde(default = "ten")]
    #[schemars(default)]
    size: Size,
}

/// It serialises nothing, so the schema has no default.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct Size(u32);

fn ten() -> Size {
    Size(10)
}

impl Default for Size {
    fn default() -> Self {
        ten()
    }
}

/// A default that the schema does not publish.
#[tool(name = "bad__hidden_default", effect = read_only, redact = ["$"])]
fn hidden_default(
    /// Which page.
    page: Page,
) -> Result<u32, ToolError> {
    Ok(page.size.0)
}

#[derive(Deserialize, JsonSchema)]
struct Even {
    /// An even number.
    #[serde(deserialize_with = "even")]
    number: u32,
}

fn even<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = u32::deserialize(deserializer)?;
    if number % 2 == 0 { Ok(number) } else { Err(serde::de::Error::custom("odd")) }
}

/// A separate parser.
#[tool(name = "bad__custom", effect = read_only, redact = ["$"])]
fn custom(
    /// The number.
    even: Even,
) -> Result<u32, ToolError> {
    Ok(even.number)
}

#[derive(Deserialize, JsonSchema)]
enum State {
    #[schemars(rename = "open")]
    Open,
    #[schemars(rename = "done")]
    Done,
}

/// Variants with two names.
#[tool(name = "bad__variant", effect = read_only, redact = ["$"])]
fn variant(
    /// The state.
    state: State,
) -> Result<bool, ToolError> {
    Ok(matches!(state, State::Done) || !matches!(state, State::Open))
}

#[derive(Deserialize, JsonSchema)]
struct Amount {
    /// Cents.
    #[schemars(with = "i64")]
    cents: f64,
}

/// An integer that is none.
#[tool(name = "bad__fraction", effect = read_only, redact = ["$"])]
fn fraction(
    /// The amount.
    amount: Amount,
) -> Result<bool, ToolError> {
    Ok(amount.cents > 0.0)
}

/// A pattern that no text can be made for.
#[tool(name = "bad__pattern", effect = read_only, redact = ["$"])]
fn pattern(
    /// The text.
    #[schemars(regex(pattern = "^(?=a)b$"))]
    text: String,
) -> Result<String, ToolError> {
    Ok(text)
}

macro_rules! found {
    ($tool:ident) => {
        disagreements(&ToolCatalog::builder().tool::<$tool>().build().expect("a catalog"), |_, _| {})
    };
}

#[test]
fn each_disagreement_is_named() {
    assert_eq!(found!(alias), ["bad__alias: /line: the parser takes the member `qty`, which the schema does not have"]);
    let hidden = "bad__hidden_default: /page/size: it may be left out, and the schema publishes no default";
    assert_eq!(found!(hidden_default), [hidden]);
    let [custom] = &found!(custom)[..] else { panic!("one line") };
    let refused = "bad__custom: /even/number: the schema allows what the parser refuses (odd), for example ";
    assert!(custom.starts_with(refused), "{custom}");
    let variants = found!(variant);
    let refused =
        "bad__variant: /state: the schema allows what the parser refuses (expected one of `Open`, `Done`), for";
    assert!(variants.iter().any(|line| line.starts_with(refused)), "{variants:?}");
    let named = "bad__variant: /state: the parser takes `Open`, which the schema does not list";
    assert!(variants.iter().any(|line| line == named), "{variants:?}");
    let fraction_of = "bad__fraction: /amount/cents: the parser takes a number with a fraction where integer is wanted, and the schema refuses it";
    assert_eq!(found!(fraction), [fraction_of]);
    let [unmade] = &found!(pattern)[..] else { panic!("one line") };
    assert!(unmade.starts_with("bad__pattern: no value of the arguments can be made: /text: "), "{unmade}");
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind")]
enum Shape {
    Circle { radius: u8 },
    Square { side: u8, corner: (i8, String) },
}

/// Arguments and an output of many kinds.
#[tool(name = "good__kinds", effect = read_only, redact = ["kind", "radius", "side"])]
fn kinds(
    /// A month.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}$"))]
    month: String,
    /// A word.
    #[schemars(regex(pattern = "^[a-z]+$"), length(max = 3))]
    word: String,
    /// Another.
    #[schemars(regex(pattern = r"^\w+$"), length(min = 2, max = 4))]
    other: String,
    /// Large.
    large: i128,
    /// Below.
    #[schemars(range(min = 0.5, max = 0.75))]
    part: f64,
    /// Perhaps.
    maybe: Option<Vec<std::collections::BTreeMap<String, i8>>>,
) -> Result<Shape, ToolError> {
    let _ = (month, word, other, large, part);
    Ok(if maybe.is_some() {
        Shape::Circle { radius: 1 }
    } else {
        Shape::Square { side: 1, corner: (1, String::new()) }
    })
}

#[derive(Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
enum Shelf {
    Upper,
    Lower,
}

/// Types of other crates, keys of an enum, and bounds at the ends of their types.
#[tool(name = "good__foreign", effect = read_only, redact = ["$"])]
fn foreign(
    /// How many parts are on each shelf.
    shelves: std::collections::BTreeMap<Shelf, u8>,
    /// When, where the clock hangs.
    local: jiff::civil::DateTime,
    /// Every day at this time.
    time: jiff::civil::Time,
    /// When, in a time zone.
    zoned: jiff::Zoned,
    /// From where.
    address: std::net::IpAddr,
    /// The id.
    id: uuid::Uuid,
    /// The least of all.
    #[schemars(range(min = -9_223_372_036_854_775_808_i64, max = -9_223_372_036_854_775_808_i64))]
    least: i64,
    /// The greatest of all.
    #[schemars(range(min = 18_446_744_073_709_551_615_u64))]
    greatest: u64,
    /// Any finite number.
    #[schemars(range(min = -1.797_693_134_862_315_7e308, max = 1.797_693_134_862_315_7e308))]
    finite: f64,
    /// Long, of a pattern.
    #[schemars(regex(pattern = "^[a-z]*$"), length(min = 50, max = 60))]
    long: String,
    /// A number of an order.
    #[schemars(regex(pattern = "^ORD-"), length(min = 6))]
    order: String,
    /// One of two forms.
    #[schemars(regex(pattern = "^[0-9]{2}$|^[a-z]{3}$"))]
    form: String,
    /// Not zero.
    some: Option<std::num::NonZeroU8>,
) -> Result<bool, ToolError> {
    let _ = (local, time, zoned, address, id, least, greatest, finite, long, order, form);
    Ok(some.is_some() && shelves.is_empty())
}

#[test]
fn what_agrees_is_not_reported() {
    assert_eq!(found!(kinds), [""; 0]);
    assert_eq!(found!(foreign), [""; 0]);
    let schemas = [
        json!({ "type": "object", "required": ["a", "b"] }),
        json!({ "type": "object", "properties": { "a": { "type": "number", "exclusiveMinimum": 0.5 } }, "required": ["a"] }),
        json!({ "type": "object", "properties": { "a": { "type": "number", "exclusiveMinimum": 0.0, "multipleOf": 0.25 } } }),
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"],
            "properties": { "a": {
                "type": "array", "items": [{ "type": "integer" }], "additionalItems": false, "minItems": 1,
            } },
        }),
    ];
    let members = [
        json!({ "allOf": [{ "type": "integer" }, { "minimum": 3 }], "maximum": 4 }),
        json!({ "allOf": [{ "properties": { "x": { "type": "integer" } } }, { "required": ["x"] }], "type": "object" }),
        json!({ "type": "object", "properties": { "x": { "type": "null" } }, "anyOf": [{ "required": ["x"] }] }),
        json!({ "type": "string", "maxLength": 3, "oneOf": [{ "minLength": 3 }, { "maxLength": 1 }] }),
        json!({ "type": "object", "patternProperties": { "^x-": { "type": "integer" } }, "minProperties": 1 }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" }, "maxProperties": 1 }),
        json!({ "type": "array", "prefixItems": [{ "type": "null" }], "items": { "type": "string" }, "minItems": 3 }),
        json!({ "type": "integer", "minimum": 0.5, "maximum": 1.5 }),
        json!({ "type": "number", "minimum": 1.7e308 }),
        json!({ "type": "string", "format": "int32" }),
        json!({ "type": "string", "minLength": 60_000 }),
        json!({ "$ref": "#/$defs/part", "minimum": 90 }),
    ];
    let of = |member| json!({ "type": "object", "properties": { "a": member }, "required": ["a"] });
    let mut schemas: Vec<_> = schemas.into_iter().chain(members.map(of)).collect();
    for schema in &mut schemas {
        schema["$defs"] = json!({ "part": { "type": "integer", "maximum": 100 } });
    }
    for schema in schemas {
        let catalog = ToolCatalog::builder().dynamic(dynamic("good__tool", &schema)).build().expect("a catalog");
        assert_eq!(disagreements(&catalog, |_, _| {}), [""; 0], "{schema}");
    }
}

#[test]
fn the_tools_of_the_examples_agree() {
    let catalog = ToolCatalog::builder().collect().crates(["office_tools"]).build().expect("a catalog");
    assert!(catalog.len() > 5);
    assert_catalog_ok!(catalog);
}

#[test]
#[should_panic(expected = "bad__alias: /line")]
fn the_macro_fails_a_test() {
    assert_catalog_ok!(ToolCatalog::builder().tool::<alias>().build().expect("a catalog"));
}

const MANY: &str = "agreement::the_macro_takes_two_thousand_tools";

#[test]
fn the_macro_takes_two_thousand_tools() {
    let schema = json!({ "type": "object", "additionalProperties": false });
    let tools = (0..2_000).map(|number| dynamic(&format!("many__tool_{number}"), &schema));
    assert_catalog_ok!(tools.fold(ToolCatalog::builder(), CatalogBuilder::dynamic).build().expect("a catalog"));
}

/// The test above, in a process of its own, so that its stderr can be read.
#[test]
fn the_macro_prints_its_progress() {
    let tests = std::env::current_exe().expect("this program");
    let ended = std::process::Command::new(tests).args([MANY, "--exact", "--nocapture"]).output().expect("it runs");
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{printed}");
    assert!(printed.contains("1000 of 2000 tools\n2000 of 2000 tools\n"), "{printed}");
}

/// The output half reports an output schema that has no value.
#[test]
fn an_output_without_values_is_named() {
    let none = json!({ "type": "integer", "minimum": 3, "maximum": 2 });
    let tool = dynamic("odd__tool", &json!({ "type": "object" })).output_schema(none);
    let catalog = ToolCatalog::builder().dynamic(tool).build().expect("a catalog");
    let expected = "odd__tool: no value of the output can be made: : no integer is within the bounds";
    assert_eq!(disagreements(&catalog, |_, _| {}), [expected]);
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Picked {
    /// A text that cannot be made.
    #[schemars(regex(pattern = "^(?=a)b$"))]
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Offer {
    /// A question.
    question: String,
}

/// The client's result has no value that the generator can make.
#[tool(
    name = "bad__picked",
    effect = read_only,
    execution = client,
    client_result = Picked,
    prepare = ["question"],
    redact = ["text"],
)]
fn picked(
    /// A question.
    question: String,
) -> Result<Offer, ToolError> {
    Ok(Offer { question })
}

#[test]
fn the_result_of_a_client_is_checked() {
    let [unmade] = &found!(picked)[..] else { panic!("one line") };
    assert!(unmade.starts_with("bad__picked: no value of the client's result can be made: /text: "), "{unmade}");
}

/// The writer filters an object in place of a leaf, so a value that is one would be missing from the visible output.
#[test]
fn a_constant_object_is_no_leaf() {
    for member in [json!({ "const": { "x": 1 } }), json!({ "enum": [[1], [2]] })] {
        let output = json!({ "type": "object", "properties": { "a": member }, "required": ["a"] });
        let tool = dynamic("odd__tool", &json!({ "type": "object" })).redact(["a"]).output_schema(output);
        let error = ToolCatalog::builder().dynamic(tool).build().expect_err("it is no leaf").to_string();
        assert!(error.contains("`a` names a value whose schema has no type"), "{error}");
    }
}

#[derive(Serialize, JsonSchema)]
struct Sheet {
    id: u32,
    #[schemars(rename = "owner")]
    by: String,
    #[serde(serialize_with = "as_text")]
    pages: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn as_text<S: serde::Serializer>(pages: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pages)
}

/// Its schema calls a member otherwise than its serialiser does.
#[tool(name = "bad__renamed", effect = read_only, redact = ["id", "owner"])]
fn renamed() -> Result<Sheet, ToolError> {
    Ok(Sheet { id: 1, by: "ada".to_owned(), pages: 2 })
}

/// Its schema has another type than its serialiser writes.
#[tool(name = "bad__as_text", effect = read_only, redact = ["id", "pages"])]
fn pages() -> Result<Sheet, ToolError> {
    renamed()
}

/// Serialisers are beyond `assert_catalog_ok!`; a call through the harness shows what they write.
#[tokio::test]
async fn a_serialiser_that_does_not_fit_its_schema_shows_in_a_call() {
    let catalog = ToolCatalog::builder().tool::<renamed>().tool::<pages>().build().expect("a catalog");
    assert_eq!(disagreements(&catalog, |_, _| {}), [""; 0]);
    let sheets = harness(catalog);
    sheets.call("bad__renamed", json!({})).await.assert_outcome("output_invalid");
    sheets.call("bad__as_text", json!({})).await.assert_outcome("output_invalid");
}

struct Nothing;

#[async_trait]
impl DynamicHandler for Nothing {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn dynamic(name: &str, schema: &Value) -> DynamicTool {
    let tool = DynamicTool::new(name, "Does nothing.", schema.clone(), ToolEffect::ReadOnly, Arc::new(Nothing));
    tool.redact(["$"]).output_schema(json!({ "type": "null" }))
}

/// A schema from elsewhere may have no value.
#[test]
fn what_cannot_be_tried_is_said() {
    let object = |member: Value| json!({ "type": "object", "properties": { "a": member }, "required": ["a"] });
    let cases = [
        (object(json!({ "type": "integer", "minimum": 3, "maximum": 2 })), "/a: no integer is within the bounds"),
        (object(json!({ "type": "string", "minLength": 4, "maxLength": 3 })), "/a: no text has such a length"),
        (
            object(json!({ "type": "string", "format": "regex", "minLength": 900 })),
            "no value of the arguments can be made",
        ),
        (object(json!(false)), "/a: the schema allows nothing"),
        (
            object(json!({ "type": "array", "items": { "type": "boolean" }, "uniqueItems": true, "minItems": 3 })),
            "/a: none of the values fits; expected at least 3 items",
        ),
        (
            object(json!({ "type": "string", "pattern": "^[0-9]{3}$", "maxLength": 2 })),
            "/a: no text of its `pattern` has such a length",
        ),
        (
            object(json!({
                "type": "array", "minItems": 1000,
                "items": { "type": "array", "minItems": 1000, "items": { "type": "boolean" } },
            })),
            "/a/0: the smallest value is too large to be tried",
        ),
        (
            object(json!({ "type": "array", "minItems": 1_000_000_000 })),
            "/a: the smallest value is too large to be tried",
        ),
        (
            object(json!({ "type": "string", "pattern": "^((((((a*)*)*)*)*)*)*$", "minLength": 9 })),
            "/a: no text of its `pattern` has such a length",
        ),
    ];
    for (schema, expected) in cases {
        let catalog = ToolCatalog::builder().dynamic(dynamic("odd__tool", &schema)).build().expect("a catalog");
        let found = disagreements(&catalog, |_, _| {});
        assert!(matches!(&found[..], [line] if line.contains(expected)), "{expected}: {found:?}");
    }
}

/// Values of a schema that comes back to itself end at a list or a member that may be absent. If there is neither, no
/// value has an end.
#[test]
fn a_recursive_schema_is_tried_as_far_as_it_ends() {
    let node = |required: Value| {
        json!({
            "type": "object", "properties": { "node": { "$ref": "#/$defs/node" } }, "required": ["node"],
            "$defs": { "node": {
                "type": "object", "required": required, "additionalProperties": false,
                "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/node" } },
            } },
        })
    };
    let found = |schema: &Value| {
        let catalog = ToolCatalog::builder().dynamic(dynamic("odd__tool", schema)).build().expect("a catalog");
        disagreements(&catalog, |_, _| {})
    };
    assert_eq!(found(&node(json!(["name"]))), [""; 0]);
    let endless = found(&node(json!(["name", "next"])));
    let [line] = &endless[..] else { panic!("one line: {endless:?}") };
    assert!(line.starts_with("odd__tool: no value of the arguments can be made: /node/next"), "{line}");
    assert!(line.ends_with("the schema nests too deep, or comes back to itself"), "{line}");
}

/// A tree has several members that come back to it. Each level doubles the places, so the rounds are few.
#[test]
fn a_tree_is_tried_as_far_as_it_ends() {
    let tree = |children: Value| {
        json!({
            "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } }, "required": ["root"],
            "$defs": { "node": {
                "type": "object", "properties": children, "required": ["name"], "additionalProperties": false,
            } },
        })
    };
    let (name, node) = (json!({ "type": "string" }), json!({ "$ref": "#/$defs/node" }));
    let list = json!({ "type": "array", "items": node });
    let either = json!({ "anyOf": [node, { "type": "null" }] });
    let trees = [
        json!({ "name": name, "left": node, "right": node }),
        json!({ "name": name, "next": node, "children": list }),
        json!({ "name": name, "children": { "type": "object", "additionalProperties": node }, "parent": either }),
    ];
    for children in trees {
        let catalog = ToolCatalog::builder().dynamic(dynamic("odd__tree", &tree(children.clone()))).build();
        assert_eq!(disagreements(&catalog.expect("a catalog"), |_, _| {}), [""; 0], "{children}");
    }
}

/// An enormous schema is refused by the catalog, or named by the check.
#[test]
fn an_enormous_schema_is_named() {
    let members = |count: usize| {
        let members = (0..count).map(|number| (format!("m{number}"), json!({ "type": "boolean" })));
        json!({ "type": "object", "properties": members.collect::<serde_json::Map<_, _>>() })
    };
    let whole = ToolCatalog::builder().dynamic(dynamic("odd__tool", &members(40_000))).build();
    assert!(whole.is_err(), "a definition of 1.5 MB");
    // 20 alternatives of 20 alternatives of 20 alternatives of the same small object.
    let of = |part: &str| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/{part}") }); 20] });
    let schema = json!({
        "type": "object", "properties": { "a": of("b") }, "required": ["a"],
        "$defs": { "b": of("c"), "c": of("d"), "d": members(4) },
    });
    let built = ToolCatalog::builder().dynamic(dynamic("odd__tool", &schema)).build();
    let found = built.map_or_else(|refused| vec![refused.to_string()], |catalog| disagreements(&catalog, |_, _| {}));
    assert!(!found.is_empty(), "8,000 alternatives");
}

/// The validator refuses a pattern with a thousand million states before a text is made for it.
#[test]
fn an_enormous_pattern_makes_no_enormous_text() {
    let text = json!({ "type": "string", "pattern": "^((a{1000}){1000}){1000}$" });
    let schema = json!({ "type": "object", "properties": { "a": text }, "required": ["a"] });
    let Ok(catalog) = ToolCatalog::builder().dynamic(dynamic("odd__tool", &schema)).build() else { return };
    let found = disagreements(&catalog, |_, _| {});
    assert!(found.iter().any(|line| line.contains("cannot be compiled")), "{found:?}");
}

/// Every member of a large object has five mutants, each as large as the object: they are a sample then.
#[test]
fn an_object_of_many_members_ends() {
    let names: Vec<_> = (0..1_000).map(|number| format!("m{number}")).collect();
    let members: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!({ "type": "null" }))).collect();
    let schema = json!({ "type": "object", "properties": members, "required": names, "additionalProperties": false });
    let catalog = ToolCatalog::builder().dynamic(dynamic("odd__tool", &schema)).build().expect("a catalog");
    assert_eq!(disagreements(&catalog, |_, _| {}), [""; 0]);
}

/// The number of values a tool gets shrinks with the catalog, and each tool is reported.
#[test]
fn a_catalog_of_many_tools_ends() {
    let schema = json!({
        "type": "object", "properties": { "id": { "type": "string", "format": "uuid" } }, "required": ["id"],
        "additionalProperties": false,
    });
    let mut builder = ToolCatalog::builder();
    for number in 0..10_000 {
        builder = builder.dynamic(dynamic(&format!("many__tool_{number}"), &schema));
    }
    let (mut told, catalog) = (0, builder.build().expect("a catalog"));
    assert_eq!(
        disagreements(&catalog, |done, all| {
            told += 1;
            assert_eq!((done, all), (told, 10_000));
        }),
        Vec::<String>::new()
    );
    assert_eq!(told, 10_000);
}
