//! Runs expansions of the macros, inside the only crate that can run them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Named, Visitor, blocking};
use crate::call::CallId;
use crate::call::{Ends, HydratedCall, RunFields, Violation, context_of};
use crate::capability::InjectedFrom;
use crate::component::ToolOutput as _;
use crate::component::declaration::Declaration;
use crate::component::{Bindings, CapabilityList, Tool};
use crate::registration::Registration;
use crate::tool::level::EffectLevel;
use crate::tool::{Digested, Execution, Hash, NoSchemaMode};
use crate::{Call, Cap, Capabilities, ToolComponent, ToolContext, ToolEffect, ToolError, ToolName};
use crate::{capability, definition, tool};

mod authored;
mod by_hand;

/// A clock.
#[capability(effect = read_only)]
trait Clock {
    fn now(&self) -> u64;
}

/// Changes tasks.
#[capability(effect = state_change)]
#[async_trait]
trait TaskWriter {
    async fn retitle(&self, id: &str, title: &str) -> String;
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> u64 {
        42
    }
}

#[async_trait]
impl TaskWriter for Fixed {
    async fn retitle(&self, id: &str, title: &str) -> String {
        format!("{id}: {title}")
    }
}

#[derive(Serialize, JsonSchema)]
struct Shown {
    text: String,
}

fn shown(text: impl ToString) -> Shown {
    Shown { text: text.to_string() }
}

struct Hydrated(CallId, ToolName, RunFields, Ends);

impl HydratedCall for Hydrated {
    fn id(&self) -> &CallId {
        &self.0
    }

    fn tool_name(&self) -> &ToolName {
        &self.1
    }

    fn run(&self) -> &RunFields {
        &self.2
    }

    fn ends(&self) -> &Ends {
        &self.3
    }
}

impl Digested for Hydrated {
    fn tool(&self) -> &str {
        self.1.as_str()
    }

    fn read(&self) -> &str {
        "null"
    }

    fn fingerprint(&self) -> u64 {
        0
    }

    fn effective(&self) -> &str {
        "null"
    }

    fn effective_digest(&self) -> Hash {
        Hash::sha256("null")
    }
}

fn context(tool: &str) -> ToolContext {
    let fields = RunFields { run_id: "run".into(), ..RunFields::default() };
    let call = Hydrated(CallId::new("call_1"), ToolName::parse(tool).unwrap(), fields, Ends::default());
    context_of(Arc::new(call), None, None)
}

/// Parses, binds and runs a tool that is known only by its type.
async fn run<T: Tool>(arguments: Value) -> Result<Value, ToolError> {
    let tool: T = serde_json::from_value(arguments).map_err(ToolError::internal)?;
    let capabilities = Capabilities::new().with::<dyn Clock>(Arc::new(Fixed)).with::<dyn TaskWriter>(Arc::new(Fixed));
    let context = context(T::DECLARATION.name);
    let granted = T::Capabilities::requirements();
    let bindings = Bindings {
        granted: &granted,
        capabilities: &capabilities,
        connections: &[],
        context: context.share(),
        client: None,
        host: None,
    };
    let bound = T::Capabilities::bind(&bindings).unwrap();
    let call = Call::new(context);
    tool.run(bound, &call).await.map(|output| serde_json::to_value(output.split().0).unwrap())
}

/// Runs the tool at a path, which can be a struct or a function.
async fn exec<N: Named>(arguments: Value) -> Result<Value, ToolError> {
    struct Run(Value);

    impl Visitor for Run {
        type Answer = Pin<Box<dyn Future<Output = Result<Value, ToolError>>>>;

        fn visit<T: Tool>(self) -> Self::Answer {
            Box::pin(run::<T>(self.0))
        }
    }

    N::visit(Run(arguments)).await
}

struct Facts {
    meta: Declaration,
    effect: ToolEffect,
    requirements: Vec<(&'static str, InjectedFrom)>,
    schema: Option<Value>,
}

fn facts<N: Named>() -> Facts {
    struct Look;

    impl Visitor for Look {
        type Answer = Facts;

        fn visit<T: Tool>(self) -> Facts {
            let requirements = T::Capabilities::requirements();
            Facts {
                meta: T::DECLARATION,
                effect: T::Effect::EFFECT,
                requirements: requirements.iter().map(|one| (one.name, one.source)).collect(),
                schema: T::DECLARATION.input.map(|input| input(&mut schemars::SchemaGenerator::default()).to_value()),
            }
        }
    }

    N::visit(Look)
}

/// Returns the pointer of the violation that an author's hook reports.
fn hook<N: Named>(arguments: Value) -> Option<String> {
    struct Hook(Value);

    impl Visitor for Hook {
        type Answer = Option<String>;

        fn visit<T: Tool>(self) -> Option<String> {
            serde_json::from_value::<T>(self.0).unwrap().validate().err().map(|violation| violation.pointer)
        }
    }

    N::visit(Hook(arguments))
}

#[tokio::test]
async fn arguments_arrive_in_the_authors_order() {
    let full = json!({"type": "t", "taskId": "7", "args": ["a", "b"], "me": 3});
    let short = json!({"taskId": "7"});
    let cases = [
        (exec::<authored::mixed>(full).await, "42 Some(\"t\") 7: a+b test__mixed Some(3)"),
        (exec::<authored::mixed>(short).await, "42 None 7: x test__mixed None"),
        (exec::<authored::Update>(json!({"id": "7", "title": "ab"})).await, "7: abab test__update"),
        (exec::<authored::Update>(json!({"id": "7", "times": 1})).await, "7:  test__update"),
        (exec::<authored::client>(json!({})).await, "prepared"),
    ];
    for (answer, expected) in cases {
        assert_eq!(answer.unwrap(), json!({"text": expected}));
    }
    assert_eq!(exec::<authored::opaque>(json!({"opaque": {"name": "n"}})).await.unwrap(), json!("n"));
}

#[tokio::test]
async fn what_is_not_an_argument_is_refused() {
    for arguments in [json!({}), json!({"taskId": "7", "clock": 1}), json!({"taskId": "7", "type_": 1}), json!([])] {
        assert!(exec::<authored::mixed>(arguments).await.is_err());
    }
}

#[tokio::test]
async fn errors_of_all_kinds_become_tool_errors() {
    let error = exec::<authored::failing>(json!({})).await.unwrap_err();
    assert_eq!(error.detail(), "disk 7");
    assert!(!error.safe_message().contains("disk"));
}

#[tokio::test]
async fn blocking_tools_run_on_a_thread_of_their_own_and_panic_here() {
    assert_eq!(exec::<authored::blocking>(json!({"panics": false})).await.unwrap(), json!({"text": "true"}));
    let panicking = tokio::task::spawn(blocking(|| panic!("on purpose")));
    assert!(panicking.await.unwrap_err().is_panic());
}

#[test]
fn the_attribute_is_in_the_constants() {
    let Facts { meta, effect, requirements, schema } = facts::<authored::mixed>();
    assert_eq!((meta.name, meta.title, effect), ("test__mixed", Some("Mixed"), ToolEffect::StateChange));
    assert_eq!(meta.description, "Everything in its own order.\n\nSecond paragraph.");
    assert_eq!((meta.redact, meta.model, meta.tags), (&["text"][..], &["more"][..], &["a", "b"][..]));
    assert_eq!(meta.timeout, Some(Duration::from_secs(120)));
    assert_eq!(meta.max_result_bytes, Some(1_024));
    assert!(meta.idempotent);
    assert_eq!(meta.require_any, ["type", "me"]);
    assert_eq!(meta.evidence, [("taskId", "test__list")]);
    assert_eq!(meta.sensitive, ["me"]);
    assert_eq!(meta.execution, Execution::Server);
    assert_eq!((meta.location.krate, meta.location.module), ("tool_runtime", "tool_runtime::private::tests::authored"));
    assert!(meta.location.file.ends_with("authored.rs") && meta.location.line > 1);
    assert_eq!(
        requirements,
        [
            ("Clock", InjectedFrom::Capability),
            ("TaskWriter", InjectedFrom::Capability),
            ("ToolContext", InjectedFrom::Context)
        ]
    );
    let schema = schema.unwrap();
    assert_eq!(schema["required"], json!(["taskId"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["args"]["default"], json!(["x"]));
    assert_eq!(schema["properties"]["me"]["description"], json!("Self."));
    assert_eq!(schema["properties"].as_object().unwrap().len(), 4);

    let update = facts::<authored::Update>();
    assert_eq!(update.meta.require_any, ["title"]);
    let schema = update.schema.unwrap();
    assert_eq!(schema["required"], json!(["id"]));
    assert_eq!(schema["properties"]["times"]["default"], json!(2));
    assert_eq!(schema["properties"]["title"]["maxLength"], json!(5));

    let opaque = facts::<authored::opaque>();
    assert_eq!((opaque.meta.no_schema, opaque.schema), (Some(NoSchemaMode::ApproveEach), None));
    let client = facts::<authored::client>();
    assert_eq!((client.meta.execution, client.meta.prepare), (Execution::Client, &["text"][..]));
}

#[test]
fn hooks_see_the_typed_arguments() {
    let cases = [
        (hook::<authored::mixed>(json!({"taskId": "x"})), Some("/args")),
        (hook::<authored::mixed>(json!({"taskId": "7"})), None),
        (hook::<authored::Update>(json!({"id": "7", "times": 0})), Some("/times")),
        (hook::<authored::failing>(json!({})), None),
    ];
    for (found, expected) in cases {
        assert_eq!(found.as_deref(), expected);
    }
}

#[test]
fn definitions_need_no_registry() {
    let names =
        [definition!(authored::mixed), authored::Update::definition()].map(|spec| spec.unwrap().name.to_string());
    assert_eq!(names, ["test__mixed", "test__update"]);
}

#[test]
fn all_tools_are_registered_once() {
    let mut sites = BTreeMap::<_, usize>::new();
    for registration in inventory::iter::<Registration> {
        *sites.entry(format!("{registration:?}")).or_default() += 1;
    }
    assert!(sites.len() >= 6, "{sites:?}");
    assert!(sites.values().all(|count| *count == 1), "{sites:?}");
}

#[test]
fn the_function_of_a_tool_can_be_called() {
    assert!(authored::failing().is_err());
    assert_eq!(authored::client().unwrap().text, "prepared");
}
