//! The catalog across crates: linked tools are found, and a collision is reported with both places.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tool_runtime::error::BuildError;
use tool_runtime::{Capabilities, RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Another crate's tool has this name.
#[tool(name = "core__wait", effect = read_only, redact = ["$"])]
fn waits() -> Result<i64, ToolError> {
    Ok(1)
}

/// A model would take it for another crate's tool.
#[tool(name = "Core__Round", effect = read_only, redact = ["$"])]
fn rounds() -> Result<i64, ToolError> {
    Ok(1)
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Output {
    known: Inner,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Inner {
    field: u8,
}

/// Its allowlist names what is not there.
#[tool(name = "catalog__misspelled", effect = read_only, redact = ["known.feild"])]
fn misspelled() -> Result<Output, ToolError> {
    Ok(Output { known: Inner { field: 1 } })
}

type Name = String;
type Lines = Vec<Vec<String>>;

/// Has constraints that no schema contains. The macro does not see through the names of types.
#[tool(name = "catalog__constraints", effect = read_only, redact = ["$"])]
fn constraints(
    /// Files.
    #[schemars(regex(pattern = "^[a-z]+$"), length(max = 3))]
    paths: Vec<String>,
    /// Amounts.
    #[schemars(range(min = 1))]
    amounts: Option<Vec<u32>>,
    /// A name.
    #[schemars(range(min = 1), inner(length(min = 1)))]
    name: Name,
    /// Labels.
    #[schemars(length(min = 1))]
    labels: BTreeMap<String, String>,
    /// Addresses.
    #[schemars(email)]
    mails: Vec<String>,
    /// Lines of words.
    #[serde(rename = "theLines")]
    #[schemars(inner(length(max = 3), inner(range(max = 3), pattern("a"))), title = "Lines")]
    lines: Lines,
) -> Result<usize, ToolError> {
    Ok(paths.len() + amounts.map_or(0, |some| some.len()) + name.len() + labels.len() + mails.len() + lines.len())
}

fn problems() -> BuildError {
    ToolCatalog::collect().expect_err("four tools are wrong")
}

#[test]
fn a_constraint_that_the_schema_does_not_contain_is_a_problem() {
    let expected = [
        "/properties/paths: `regex` does not constrain a list; write `inner(regex(..))`",
        "/properties/amounts: `range` does not constrain a list; write `inner(range(..))`",
        "/properties/name: `range` does not constrain a text; write `length(..)` or `regex(..)`",
        "/properties/name: `inner` does not constrain a text; write `length(..)` or `regex(..)`",
        "/properties/labels: `length` does not constrain an object or a map; write it on a field of the type, or check \
         the value in `validate`",
        "/properties/mails: `email` does not constrain a list; write `inner(email)`",
        "/properties/theLines/items/items: `range` does not constrain a text; write `length(..)` or `regex(..)`",
    ];
    let lines = |error: &BuildError, intro: &str| {
        let problems = error.problems().iter().filter(|problem| problem.code() == "schema");
        let lines = problems.map(|problem| problem.to_string().lines().next().unwrap().replace(intro, ""));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(lines(&problems(), "`catalog__constraints`: schema of the arguments: at "), expected);
    let definition = tool_runtime::definition!(constraints).expect_err("it has mistakes");
    assert_eq!(lines(&definition, "arguments: at "), expected);
    let checked =
        std::panic::catch_unwind(|| tool_runtime::assert_catalog_ok!()).expect_err("the catalog has mistakes");
    assert!(checked.downcast_ref::<String>().unwrap().contains(expected[0]));
}

#[test]
fn all_problems_come_together_with_their_places() {
    let error = problems();
    let codes: Vec<_> = error.problems().iter().map(tool_runtime::error::Problem::code).collect();
    assert_eq!(codes, [["schema"; 7].as_slice(), &["redaction", "collision", "collision"]].concat(), "{error}");
    let text = error.to_string();
    for (line, what) in
        [("`core__wait`", "the same name"), ("`Core__Round` and `core__round`", "alike"), ("`known.field`", "nearest")]
    {
        assert!(text.contains(line), "{what}: {text}");
    }
}

#[test]
fn a_collision_names_both_files_and_lines() {
    let error = problems();
    for problem in error.problems().iter().filter(|problem| problem.code() == "collision") {
        let places: Vec<_> = problem.locations().collect();
        assert_eq!(places.len(), 2, "{problem}");
        for file in ["tests/tests/catalog/linked.rs:", "tests/consumer/src/lib.rs:"] {
            let place = places.iter().find(|place| place.contains(file)).expect("both files are named");
            let line = place.split(file).nth(1).and_then(|rest| rest.split([':', ' ', ')']).next());
            assert!(line.expect("a line").parse::<u32>().is_ok_and(|line| line > 1), "{place}");
        }
    }
}

#[test]
fn collecting_can_be_narrowed() {
    let one = ToolCatalog::builder().collect().crates(["consumer"]).build().expect("the other crate alone is fine");
    let names: Vec<_> = one.specs().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["calendar__until_next", "core__letters", "core__round", "core__wait"]);
    let one =
        ToolCatalog::builder().crates(["consumer"]).namespaces(["calendar"]).build().expect("one namespace is fine");
    assert_eq!(one.len(), 1);
    let none = ToolCatalog::builder().collect().crates(["nobody"]).build().expect_err("nothing is left");
    assert!(none.to_string().contains("use my_tools as _;"), "{none}");
    assert!(none.to_string().contains("linked: `catalog`, `consumer`, `office_tools`"), "{none}");
    let one =
        ToolCatalog::builder().namespaces(["calender", "core"]).build().expect_err("a filter that matches nothing");
    assert!(one.to_string().contains("did you mean `calendar`?"), "{one}");
}

#[test]
fn definitions_do_not_depend_on_the_order_of_linking() {
    let forwards =
        ToolCatalog::builder().tool::<consumer::letters>().tool::<consumer::Round>().tool::<consumer::until_next>();
    let backwards =
        ToolCatalog::builder().tool::<consumer::until_next>().tool::<consumer::Round>().tool::<consumer::letters>();
    let [forwards, backwards] = [forwards, backwards].map(|builder| builder.build().expect("a catalog"));
    let text =
        |catalog: &ToolCatalog| serde_json::to_string(&catalog.specs().collect::<Vec<_>>()).expect("definitions");
    assert_eq!(text(&forwards), text(&backwards));
    let names: Vec<_> = backwards.specs().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["calendar__until_next", "core__letters", "core__round"], "they come by name");
    let hash = |catalog| {
        let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["core__letters", "core__round"]));
        let clock: Arc<dyn consumer::Clock> = Arc::new(Noon);
        let runner = runner.capabilities(Capabilities::new().with(clock)).build().expect("a runner");
        runner.run(RunOptions::new()).catalog().hash()
    };
    assert_eq!(hash(forwards), hash(backwards));
}

struct Noon;

impl consumer::Clock for Noon {
    fn now(&self) -> i64 {
        43_200
    }
}

#[test]
fn a_definition_says_what_its_arguments_say() {
    let round = consumer::Round::definition().expect("a definition");
    let schema: serde_json::Value = serde_json::from_str(&round.input_schema.to_string()).expect("JSON");
    assert_eq!(schema["required"], json!(["time"]));
    assert_eq!(schema["properties"]["to"]["default"], json!("day"));
}
