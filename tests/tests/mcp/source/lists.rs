//! Hostile lists of tools.

use tool_runtime::ToolPolicy;

use crate::source::{NEVER, connect, echoes, noted, quarantine, server, tool};

#[tokio::test(flavor = "multi_thread")]
async fn bad_definitions_are_kept_out_and_the_good_tool_stays() {
    for (scenario, expected) in [
        (
            "malformed",
            &[
                ("no_schema", "malformed"),
                ("null_schema", "input_schema"),
                ("text_schema", "input_schema"),
                ("other_root", "input_schema"),
                ("bad_type", "input_schema"),
                ("bad_minimum", "input_schema"),
                ("bad_regex", "input_schema"),
                ("bad_description", "malformed"),
                ("bad_output", "output_schema"),
            ][..],
        ),
        ("deep-schema", &[("deep", "malformed")]),
        ("surrogate", &[("half", "malformed")]),
        ("duplicate-keys", &[("", "malformed")]),
        (
            "hostile-schemas",
            &[
                ("fetches", "input_schema"),
                ("reads", "input_schema"),
                ("loops", "input_schema"),
                ("doubles", "input_schema"),
                ("dialect", "input_schema"),
                ("large", "too_large"),
            ],
        ),
        ("duplicate-names", &[("twice", "duplicate_name")]),
        (
            "colliding-names",
            &[
                ("get_user", "colliding_name"),
                ("get-user", "colliding_name"),
                ("Read", "colliding_name"),
                ("read", "colliding_name"),
            ],
        ),
        ("illegal-names", &[("", "illegal_name")]),
        ("task-only", &[("slow", "unsupported_execution")]),
    ] {
        let servers = connect(scenario).await;
        for (raw, code) in expected {
            assert_eq!(quarantine(&servers, raw), *code, "{scenario} {raw}");
        }
        echoes(&servers).await;
        servers.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_null_is_empty() {
    let servers = connect("null-tools").await;
    assert!(servers.tools().is_empty() && servers.notes().is_empty(), "{:?}", servers.notes());
    servers.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_an_end() {
    for (scenario, note) in [
        ("endless-cursor", "more than 100 pages"),
        ("repeated-cursor", "repeats a page"),
        ("hang-second-page", "page 2: the server did not answer in time"),
    ] {
        let limit = |limit| if scenario == "hang-second-page" { limit } else { NEVER };
        let servers = noted(note, |short| vec![server("s", scenario).connect_timeout(limit(short))]).await;
        // One definition that comes twice is one tool.
        assert_eq!(servers.tools().iter().filter(|tool| tool.raw_name() == "echo").count(), 1);
        echoes(&servers).await;
        servers.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_tools_are_listed() {
    let servers = connect("many-tools").await;
    assert_eq!((servers.tools().len(), servers.notes().len()), (5001, 0));
    echoes(&servers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_shadows_nothing_and_a_claim_decides_nothing() {
    let servers = connect("colliding-names").await;
    assert_eq!(tool(&servers, "core__add").name(), Some("mcp__s__core__add"));
    let servers = connect("illegal-names").await;
    let dotted = tool(&servers, "dotted.name");
    assert!(dotted.name().unwrap().starts_with("mcp__s__dotted_name_"));
    assert_eq!(servers.tools().iter().filter(|tool| tool.name().is_none()).count(), 5);

    let servers = connect("lying-annotations").await;
    let catalog = tool_runtime::ToolCatalog::builder().source(&servers).build().unwrap();
    let wipe = catalog.get("mcp__s__wipe_disk").unwrap();
    assert_eq!(wipe.effect, tool_runtime::ToolEffect::ExternalSideEffect);
    assert_eq!(tool(&servers, "wipe_disk").state(&ToolPolicy::deny_all()), "discovered");
    // Allowed without a pin is not enabled.
    let allowed = ToolPolicy::allow(["mcp__s__wipe_disk"]);
    assert_eq!(tool(&servers, "wipe_disk").state(&allowed), "discovered");
}
