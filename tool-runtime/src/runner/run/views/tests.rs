//! Tests that a view is shared by parties with the same tools, is never stale, and that the cache is bounded.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolContext;
use crate::catalog::CatalogBuilder;
use crate::error::ToolError;
use crate::policy::ToolPolicy;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::tool::ToolEffect;

struct Nothing;

#[async_trait]
impl DynamicHandler for Nothing {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

fn tool(name: &str, effect: ToolEffect) -> DynamicTool {
    DynamicTool::new(name, "Does it.", json!({"type": "object"}), effect, Arc::new(Nothing)).redact(["$"])
}

fn catalog() -> Arc<ToolCatalog> {
    let reads = ["views__a", "views__b", "views__c"].map(|name| tool(name, ToolEffect::ReadOnly));
    let tools = reads.into_iter().chain([tool("views__change", ToolEffect::StateChange)]);
    Arc::new(tools.fold(ToolCatalog::builder(), CatalogBuilder::dynamic).build().unwrap())
}

fn runner(policy: &str) -> ToolRunner {
    ToolRunner::builder(catalog(), ToolPolicy::from_toml(policy).unwrap()).build().unwrap()
}

fn names(run: &Run) -> Vec<&str> {
    run.catalog().specs().map(|spec| spec.name.as_str()).collect()
}

fn is_shared(one: &Run, other: &Run) -> bool {
    std::ptr::eq(one.catalog(), other.catalog())
}

#[test]
fn those_who_may_see_the_same_share_a_view() {
    let runner = runner(
        r#"
        allowed_tools = ["views__a"]
        [roles.reader]
        allowed_tools = ["views__b"]
        [roles.editor]
        allowed_tools = ["views__b", "views__change"]
        [roles.copyist]
        allowed_tools = ["views__b"]
        [labels.untrusted]
        from_run = true
        deny_effects = ["state_change"]
        "#,
    );
    let of = |role: &str| runner.run(RunOptions::new().role(role.to_owned()));
    let nobody = runner.run(RunOptions::new());
    assert_eq!(names(&nobody), ["views__a"]);
    assert!(is_shared(&nobody, &runner.run(RunOptions::new().principal("ada").tenant("acme"))));
    let reader = of("reader");
    assert_eq!(names(&reader), ["views__a", "views__b"]);
    // Another party with the same tools.
    assert!(is_shared(&reader, &of("copyist")) && !is_shared(&reader, &nobody));
    let editor = of("editor");
    assert_eq!(names(&editor), ["views__a", "views__b", "views__change"]);
    let labelled = runner.run(RunOptions::new().role("editor").label("untrusted"));
    assert_eq!(names(&labelled), ["views__a", "views__b"]);
    assert_eq!(names(&of("editor")), names(&editor));
    assert_eq!(editor.catalog().hash(), of("editor").catalog().hash());
}

#[test]
fn another_policy_has_views_of_its_own() {
    let catalog = catalog();
    let under = |policy: ToolPolicy| ToolRunner::builder(Arc::clone(&catalog), policy).build().unwrap();
    let (wide, narrow) = (under(ToolPolicy::allow(["views__a", "views__b"])), under(ToolPolicy::allow(["views__a"])));
    assert_eq!(names(&wide.run(RunOptions::new())), ["views__a", "views__b"]);
    assert_eq!(names(&narrow.run(RunOptions::new())), ["views__a"]);
    // Without approvals in the runner, a required approval is a denial.
    let asks = ToolPolicy::allow(["views__a"]).with_approval_for_effects([ToolEffect::ReadOnly]);
    let asking =
        |approvals| ToolRunner::builder(Arc::clone(&catalog), asks.clone()).approvals(approvals).build().unwrap();
    assert_eq!(names(&asking(true).run(RunOptions::new())), ["views__a"]);
    assert_eq!(names(&asking(false).run(RunOptions::new())), [""; 0]);
}

#[tokio::test]
async fn a_run_that_is_held_to_another_policy_shares_no_view() {
    let catalog = catalog();
    let under = |policy: ToolPolicy| ToolRunner::builder(Arc::clone(&catalog), policy).build().unwrap();
    let wide = under(ToolPolicy::allow(["views__a", "views__b"]));
    let began = under(ToolPolicy::allow(["views__a"])).run(RunOptions::new());
    let free = wide.run(RunOptions::new());
    let restored = wide.restore(began.snapshot().await.unwrap(), RunOptions::new()).await.unwrap();
    assert_eq!((names(&free), names(&restored)), (vec!["views__a", "views__b"], vec!["views__a"]));
    assert_eq!(names(&wide.run(RunOptions::new())), ["views__a", "views__b"]);
    let again = wide.restore(free.snapshot().await.unwrap(), RunOptions::new()).await.unwrap();
    assert!(is_shared(&free, &again));
}

#[test]
fn tools_by_name_are_looked_up_and_no_other_is_asked_about() {
    let runner = runner(r#"allowed_tools = ["views__a", "views__b"]"#);
    let of = |tools: &[&str]| runner.run(RunOptions::new().tools(tools));
    assert_eq!(names(&of(&["views__c", "views__b", "views__nothing", "views__a"])), ["views__a", "views__b"]);
    assert_eq!(names(&of(&[])), [""; 0]);
    assert_eq!(names(&runner.run(RunOptions::new())), ["views__a", "views__b"]);
    assert!(is_shared(&of(&["views__b"]), &of(&["views__b"])));
    let asked = std::cell::Cell::new(0);
    let named = ["views__b", "views__nothing"].into_iter().map(Into::into).collect();
    let view = runner.catalog().view(Some(&named), |_| {
        asked.set(asked.get() + 1);
        true
    });
    assert_eq!((asked.get(), view.len()), (1, 1));
}

#[test]
fn what_is_kept_is_bounded() {
    let principals = |at: usize| format!("[principals.p{at}]\nallowed_tools = ['views__b']\n");
    let runner = runner(&(0..2 * MOST_PARTIES).map(principals).collect::<String>());
    let of = |at: usize| runner.run(RunOptions::new().principal(format!("p{at}")));
    let first = of(0);
    for at in 1..2 * MOST_PARTIES {
        assert_eq!(names(&of(at)), ["views__b"]);
        // Entries in use stay.
        assert!(is_shared(&first, &of(0)));
    }
    let kept = runner.shared.views.kept();
    assert_eq!((kept.views.len(), kept.tools), (MOST_PARTIES, MOST_PARTIES));
    assert!(kept.views.values().all(|known| std::ptr::eq(Arc::as_ptr(&known.view), first.catalog())));
    let policy = RunPolicy::new(runner.policy().clone());
    let is_kept = |at: usize| {
        let principal = format!("p{at}");
        let context = PolicyContext { principal: Some(&principal), ..PolicyContext::default() };
        kept.views.contains_key(&Party::of(&policy, &context).unwrap())
    };
    assert!(is_kept(0) && !is_kept(1) && is_kept(2 * MOST_PARTIES - 1));
}
