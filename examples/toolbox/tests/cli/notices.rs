//! Tests `notices`: the webhook of the configuration file gets the notices of every command.

use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::rig::Rig;

const POLICY: &str = "\
    allowed_tools = ['mail__send_email']\n\
    require_approval_for_effects = ['external_side_effect']\n\
    [approvals]\nown_calls = true\n\
    [notices]\nlink = 'https://app.example/{call}'\n\
    [notices.tools.mail__send_email]\narguments = ['/subject']\n";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const MAIL: &str = r#"{"to":["ada@example.com"],"subject":"Hello","body":"Canary"}"#;

/// A program with a webhook, and a call that was approved.
fn approved(url: &str) -> Rig {
    let mut rig = Rig::new();
    rig.write("p.toml", POLICY);
    let settings = format!("policy = '../../p.toml'\nnotices_url = '{url}'\nnotices_secret_env = 'HOOK'\n");
    rig.write("config/toolbox/config.toml", &settings);
    rig.set("HOOK", SECRET);
    rig.run(&["call", "mail__send_email", MAIL]).code(5);
    let waiting = rig.run(&["--json", "approvals", "list"]).code(0).json();
    rig.run(&["approvals", "approve", waiting[0]["id"].as_str().unwrap()]).code(0);
    rig
}

fn listed(rig: &Rig) -> Vec<Value> {
    rig.run(&["--json", "notices", "list"]).code(0).json().as_array().unwrap().clone()
}

#[test]
fn notices_are_listed_sent_and_sent_again() {
    let endpoint = Endpoint::new(vec![json!({}), json!({}), json!({"status": 500})]);
    let rig = approved(&endpoint.url);
    let before = listed(&rig);
    let kinds: Vec<_> = before.iter().map(|row| (&row["event"], &row["state"])).collect();
    assert_eq!(kinds, [(&json!("call.waiting"), &json!("pending")), (&json!("call.decided"), &json!("pending"))]);
    let table = rig.run(&["notices", "list"]).code(0).stdout;
    assert!(table.contains("call.waiting") && table.contains("pending"), "{table}");
    assert_eq!(rig.run(&["--json", "notices", "send"]).code(0).json(), json!({"delivered": 2}));
    let mut sent = [endpoint.request(), endpoint.request()];
    sent.sort_by_key(|payload| payload["type"].to_string());
    assert_eq!(sent[0]["data"]["decision"], "approved");
    assert_eq!(sent[1]["data"]["arguments"], json!({"/subject": "Hello"}));
    assert!(sent[1]["data"]["link"].as_str().unwrap().starts_with("https://app.example/"), "{sent:?}");
    assert!(!format!("{sent:?}").contains("Canary"));
    assert!(listed(&rig).iter().all(|row| row["state"] == "delivered" && row["attempts"][0]["status"] == 200));
    let id = before[0]["id"].as_str().unwrap();
    assert_eq!(rig.run(&["--json", "notices", "retry", id]).code(0).json()["state"], "pending");
    assert_eq!(rig.run(&["--json", "notices", "send"]).code(0).json(), json!({"delivered": 0}));
    let again = listed(&rig);
    assert_eq!((&again[0]["state"], &again[0]["attempts"][1]["code"]), (&json!("pending"), &json!("status")));
    assert_eq!(rig.run(&["--json", "notices", "retry", "msg_1"]).code(2).error(), "not_found");
    assert_eq!(rig.run(&["--json", "--tenant", "other", "notices", "list"]).code(0).json(), json!([]));
}

#[test]
fn a_webhook_that_cannot_be_used_is_named_without_its_secrets() {
    let mut rig = approved("http://app.example/Canary");
    let refused = rig.run(&["--json", "notices", "send"]).code(2);
    assert_eq!(refused.error(), "not_a_webhook_url");
    assert!(!refused.stderr.contains("Canary"), "{}", refused.stderr);
    rig.set("TOOLBOX_NOTICES_URL", "https://app.example/").set("HOOK", "whsec_Canary");
    let refused = rig.run(&["--json", "notices", "send"]).code(2);
    assert_eq!(refused.error(), "not_a_webhook_secret");
    assert!(!refused.stderr.contains("Canary"), "{}", refused.stderr);
    rig.set("TOOLBOX_NOTICES_SECRET_ENV", "NONE");
    let missing = rig.run(&["--json", "notices", "send"]).code(2);
    assert!(missing.stderr.contains("NONE"), "{}", missing.stderr);
    let explained = rig.run(&["policy", "explain", "mail__send_email"]).stdout;
    assert!(explained.contains("waiting, decided, expired, unknown; with the arguments /subject"), "{explained}");
}
