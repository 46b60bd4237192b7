//! Declarations of graphs: which are valid, who may call them, and which tools they may use.

use super::*;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolContext, ToolEffect};

fn graph(name: &str, tools: &[&str]) -> Graph {
    let agent = Agent::new(ScriptedModel::new([]));
    Graph::new(name, "1", agent).description("Does something.").tools(tools.iter().copied())
}

fn refused(graph: Graph) -> String {
    let built = ToolCatalog::builder().namespaces(["notes"]).dynamic(researcher([])).dynamic(graph).build();
    built.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_graph_that_could_not_work_is_refused() {
    let says = |graph, part: &str| {
        let text = refused(graph);
        assert!(text.contains(part), "{text}");
    };
    says(graph("x", &[]), "it has no tools");
    says(graph("x", &["notes__lst"]), "there is no tool `notes__lst`; did you mean `notes__list`?");
    says(graph("x", &["notes__cursor"]), "`notes__cursor` is executed by the client");
    says(graph("x", &["graph__x"]), "`graph__x` is a graph, and a graph runs no graph");
    says(graph("x", &["graph__researcher"]), "`graph__researcher` is a graph");
    says(graph("x", &["GRAPH__researcher"]), "`GRAPH__researcher` is a graph");
    says(graph("researcher", &["notes__list"]), "2 tools are called `graph__researcher`");
    says(graph("a b", &["notes__list"]), "a character other than");
    says(graph("x", &["notes__list"]).description(""), "the description is empty");
}

struct Never;

#[async_trait::async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &serde_json::Value, _: &ToolContext) -> Result<serde_json::Value, ToolError> {
        panic!("it never runs")
    }
}

#[test]
fn nobody_else_takes_the_name_of_a_graph() {
    for name in ["graph__researcher", "Graph__researcher"] {
        let schema = serde_json::json!({"type": "object"});
        let forged = DynamicTool::new(name, "Forged.", schema, ToolEffect::ReadOnly, Arc::new(Never)).redact(["$"]);
        let text = ToolCatalog::builder().dynamic(forged).build().map(|_| ()).unwrap_err().to_string();
        assert!(text.contains("the namespace `graph` is reserved for graphs"), "{text}");
    }
    assert!(tool_runtime::ToolName::parse("graph__x").is_err());
}

#[test]
fn effect_and_hash_follow_from_the_tools() {
    let spec = |graph: Graph| {
        let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(graph).build().unwrap();
        catalog.get("graph__x").unwrap().clone()
    };
    let read = spec(graph("x", &["notes__list"]));
    assert_eq!(read.effect, ToolEffect::ReadOnly);
    assert_eq!(spec(graph("x", &["notes__list", "notes__count"])).effect, ToolEffect::StateChange);
    let hash = |graph| spec(graph).definition_hash;
    assert_eq!(hash(graph("x", &["notes__list"])), read.definition_hash);
    assert_ne!(hash(graph("x", &["notes__page"])), read.definition_hash);
    let agent = Agent::new(ScriptedModel::new([]));
    let next = Graph::new("x", "2", agent).description("Does something.").tools(["notes__list"]);
    assert_ne!(hash(next), read.definition_hash);
}

#[test]
fn a_policy_names_graphs_that_exist_where_they_belong() {
    let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(researcher([])).build().unwrap();
    let problems = |policy: &str| {
        let policy = ToolPolicy::from_toml(policy).unwrap();
        policy.check(catalog.specs(), []).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(problems("allowed_graphs = ['researcher']"), "");
    let text = problems("allowed_graphs = ['reseacher']");
    assert!(text.contains("there is no graph `reseacher`") && text.contains("`researcher`"), "{text}");
    let text = problems("allowed_tools = ['graph__researcher']");
    assert!(text.contains("only `allowed_graphs` allows"), "{text}");
    let text = problems("roles.a.allowed_tools = ['graph__researcher']");
    assert!(text.contains("only `allowed_graphs` allows"), "{text}");
    assert_eq!(problems("allowed_graphs = ['researcher']\nroles.guest.denied_tools = ['graph__researcher']"), "");
    for place in ["roles.a", "principals.a", "attributes.a.b", "tenants.a", "tenants.a.roles.b"] {
        let text = problems(&format!("{place}.allowed_graphs = ['reseacher']"));
        let expected = format!("`{place}.allowed_graphs`: there is no graph `reseacher`; did you mean `researcher`?");
        assert!(text.contains(&expected), "{text}");
        assert_eq!(problems(&format!("{place}.allowed_graphs = ['researcher']")), "");
    }
    let text = problems("roles.a.allowed_graphs = ['graph__researcher']");
    assert!(text.contains("`graph__researcher` is the name of its tool; write `researcher`"), "{text}");
    let text = problems("budgets.graphs.reseacher.calls = 1");
    assert!(text.contains("`budgets.graphs.reseacher`: there is no graph `reseacher`"), "{text}");
    let text = problems("budgets.graphs.researcher.bytes = 10");
    assert!(text.contains("`budgets.graphs.researcher.bytes`: a call reserves the size limit"), "{text}");
    assert_eq!(problems("budgets.graphs.researcher.turns = 3"), "");
    for (policy, expected) in [
        ("[budgets.graphs.researcher]", "this budget limits nothing"),
        (
            "[budgets.graphs.researcher]\nwindow = '1h'\ncalls = 1",
            "`window` is for the budgets of a principal or a tenant",
        ),
        ("[budgets.graphs.researcher]\nturn = 1", "unknown"),
    ] {
        let text = ToolPolicy::from_toml(policy).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn a_role_grants_a_graph() {
    let answers = || {
        let agent = Agent::new(Follows(|_: &str, _| ScriptedTurn::text(REPORT)));
        Graph::new("researcher", "1", agent).description("Researches.").tools(["notes__list"])
    };
    let outcome = async |policy: &'static str, options: fn(RunOptions) -> RunOptions| {
        let rig = Rig::new();
        let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(answers()).build().unwrap();
        let policy = ToolPolicy::from_toml(&format!("allowed_tools = ['notes__list']\n{policy}")).unwrap();
        let runner =
            ToolRunner::builder(catalog, policy).capabilities(rig.capabilities()).store(Arc::clone(&rig.store));
        let run = runner.build().unwrap().run(options(rig.options()));
        let outcome = run.exec(ask("p1")).await.outcome();
        assert_eq!(run.catalog().get("graph__researcher").is_some(), outcome == Outcome::Ok);
        let rule =
            rig.records().await.pop().and_then(|record| record.decision).map(|decision| decision.rule.into_owned());
        (outcome, rule.unwrap_or_default())
    };
    let clerk = |options: RunOptions| options.role("clerk");
    let role = "[roles.clerk]\nallowed_graphs = ['researcher']";
    assert_eq!(outcome(role, clerk).await, (Outcome::Ok, "roles.clerk.allowed_graphs".to_owned()));
    assert_eq!(outcome(role, |options| options).await, (Outcome::PolicyDenied, "allowed_graphs".to_owned()));
    let tenant = "[tenants.acme.roles.clerk]\nallowed_graphs = ['researcher']";
    assert_eq!(outcome(tenant, clerk).await.0, Outcome::Ok);
    assert_eq!(outcome(tenant, |options| options.role("clerk").tenant("other")).await.0, Outcome::PolicyDenied);
    // A denial takes precedence.
    let denied = "[roles.clerk]\nallowed_graphs = ['researcher']\n[tenants.acme]\ndenied_tools = ['graph__researcher']";
    assert_eq!(outcome(denied, clerk).await, (Outcome::PolicyDenied, "tenants.acme.denied_tools".to_owned()));
}

#[tokio::test]
async fn a_graph_that_no_list_names_is_denied() {
    let rig = Rig::new();
    let catalog = ToolCatalog::builder().namespaces(["notes"]).dynamic(researcher([])).build().unwrap();
    let runner =
        ToolRunner::builder(catalog, ToolPolicy::allow(TOOLS)).capabilities(rig.capabilities()).build().unwrap();
    let run = runner.run(RunOptions::new());
    assert!(run.catalog().get("graph__researcher").is_none());
    let (known, unknown) = (run.exec(ask("p1")).await, run.exec(ToolCall::text("p2", "graph__other", "{}")).await);
    assert_eq!((known.outcome(), unknown.outcome()), (Outcome::PolicyDenied, Outcome::Unavailable));
    assert_eq!(known.to_model(), unknown.to_model());
}

#[tokio::test]
async fn a_graph_uses_what_both_have_and_no_graph() {
    let rig = Rig::new();
    let turns = [
        call("c1", "notes__count", r#"{"at":1}"#),
        call("c2", "graph__researcher", r#"{"task":"Again."}"#),
        call("c3", "graph__other", r#"{"task":"Again."}"#),
        call("c4", "notes__page", "{}"),
        call("c5", "notes__list", "{}"),
        ScriptedTurn::text(REPORT),
    ];
    let model = Arc::new(ScriptedModel::new(turns));
    let graph = Graph::new("researcher", "1", Agent::new(Arc::clone(&model))).description("Researches.");
    // The graph has no `count`, because the run has none, and no `page`, because the table of the caller denies it.
    let graph = graph.tools(["notes__list", "notes__page", "notes__count"]);
    let runner = rig.runner("[callers.'graph:researcher']\ndenied_tools = ['notes__page']", graph);
    let tools = ["graph__researcher", "notes__list", "notes__page"];
    let run = runner.run(rig.options().tools(tools));
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    let found = rig.records().await;
    let of = |id: &str| found.iter().find(|record| record.tool_call_id.as_str() == id).unwrap();
    for denied in ["c1", "c2", "c3", "c4"] {
        assert_eq!(of(denied).outcome, Outcome::PolicyDenied, "{denied}");
    }
    // The refusal does not reveal whether there is such a graph.
    assert_eq!(of("c2").safe_message, of("c3").safe_message);
    assert!(of("c2").safe_message.as_deref().unwrap().contains("A graph cannot call a graph"));
    assert_eq!(of("c2").decision.as_ref().unwrap().rule, "graph.depth");
    assert_eq!(of("c5").outcome, Outcome::Ok);
    // The parent may read the page itself.
    assert_eq!(run.exec(ToolCall::text("p2", "notes__page", "{}")).await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn a_graph_has_no_tool_that_reaches_further() {
    let rig = Rig::new();
    let graph = researcher([call("c1", "notes__count", r#"{"at":1}"#), ScriptedTurn::text(REPORT)]);
    // The policy raises the effect of `count` above the effect of the graph.
    let run = rig.runner("tools.notes__count.effect = 'external_side_effect'", graph).run(rig.options());
    assert_eq!(run.exec(ask("p1")).await.outcome(), Outcome::Ok);
    assert_eq!(rig.outcomes().await[0], ("notes__count".to_owned(), Outcome::PolicyDenied));
    assert_eq!(rig.effects(), 0);
}
