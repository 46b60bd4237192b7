//! A person's part in a call: the model reads it with the result, in every format.

use tests::Shown as _;
use tool_runtime::agent::{Input, SavedConversation};
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::{ToolError, tool};

use super::*;

/// Sends a letter.
#[tool(name = "letters__send", effect = external_side_effect, redact = ["$"])]
fn send(
    /// Whom to.
    to: Vec<String>,
    /// What about.
    subject: String,
    /// A secret.
    #[arg(sensitive)]
    code: String,
) -> Result<usize, ToolError> {
    if subject.is_empty() {
        return Err(ToolError::code("no_subject").with_safe("There is no subject."));
    }
    Ok(to.len().min(code.len()))
}

const CALL: &str = r#"{"to":["a@example.com"],"subject":"s","code":"secret-1"}"#;
const EDITED: &str = r#"{"to":["b@example.com"],"subject":"edited","code":"secret-2"}"#;
const SENTENCE: &str = r#"A person changed `code`, `subject`, `to` before it ran: `code` is "[sensitive]", `subject` is "edited", `to` is ["b@example.com"]."#;

fn runner() -> ToolRunner {
    let policy = "allowed_tools = [\"letters__send\"]\nrequire_approval_for_tools = [\"letters__send\"]";
    let catalog = ToolCatalog::builder().tool::<send>().build().unwrap();
    let store = std::sync::Arc::new(tool_runtime::store::MemoryStore::new());
    ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true).store(store).build().unwrap()
}

/// The body of the request after a decision, which another process takes.
async fn after(format: Format, stream: bool, decision: ApprovalDecision) -> String {
    let runner = runner();
    let replies = [Turn::calls([("c1", "letters__send", CALL)]), Turn::text("Sent.")];
    let replies = replies.map(|turn| Reply::stream(&turn.stream(format)));
    let server = Server::start(replies).unwrap();
    let agent = Agent::new(client(format, &server).stream(stream).build().unwrap());
    let options = || RunOptions::new().principal("ada").tenant("acme");
    let mut conversation = agent.converse(runner.run(options()));
    assert!(matches!(conversation.send("Write to a.").await, TurnOutcome::Waiting { .. }), "{format}");
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent.restore(&runner, options(), saved).await.unwrap();
    let question = conversation.waiting().next().unwrap().question.clone();
    let grace = Decider::new("grace").tenant("acme");
    let ended = conversation.receive(Input::new().decide(&question, decision, &grace)).await.unwrap();
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{format}: {ended:?}");
    server.asked().pop().unwrap().body
}

#[tokio::test]
async fn the_model_reads_what_a_person_changed() {
    for &format in Format::ALL {
        let body = after(format, true, ApprovalDecision::ApproveEdited(EDITED.to_owned())).await;
        let text = body.replace('\\', "");
        assert!(text.contains(SENTENCE), "{format}: {body}");
        // The call stays as the model wrote it, because providers sign it.
        assert!(text.contains("a@example.com") && !text.contains("secret-2"), "{format}: {body}");
    }
}

#[tokio::test]
async fn the_model_reads_that_a_value_is_a_persons() {
    for &format in Format::ALL {
        let body = after(format, true, ApprovalDecision::Respond("7".to_owned())).await;
        assert!(
            body.contains(r"7\n\nThe tool did not run: a person provided this result instead."),
            "{format}: {body}"
        );
    }
}

#[tokio::test]
async fn a_failure_says_what_the_tool_got() {
    let edited = r#"{"to":["a@example.com"],"subject":"","code":"secret-1"}"#;
    for &format in Format::ALL {
        let body = after(format, true, ApprovalDecision::ApproveEdited(edited.to_owned())).await.replace('\\', "");
        let note = r#""note":"A person changed `subject` before it ran: `subject` is ""."}"#;
        assert!(body.contains(note), "{format}: {body}");
    }
}

#[tokio::test]
async fn what_changed_nothing_is_not_mentioned() {
    for decision in [
        ApprovalDecision::Approve,
        ApprovalDecision::ApproveEdited(CALL.replace(',', " , ")),
        ApprovalDecision::Deny(None),
    ] {
        let body = after(Format::OpenAiChat, true, decision).await;
        assert!(!body.contains("changed") && !body.contains("provided this result"), "{body}");
    }
}

#[tokio::test]
async fn a_result_from_a_record_says_it_too() {
    let runner = runner();
    let run = runner.run(RunOptions::new().principal("ada").tenant("acme").run_id("r"));
    run.exec(tool_runtime::ToolCall::text("c1", "letters__send", CALL)).await;
    let decision = ApprovalDecision::ApproveEdited(EDITED.to_owned());
    let result = run.resume_shown("c1", decision, &Decider::new("grace").tenant("acme")).await.unwrap();
    assert_eq!(result.to_model(), format!("1\n\n{SENTENCE}"));
    let recorded = run.recorded(&"c1".into()).await.unwrap().unwrap();
    assert_eq!(recorded.to_model(), result.to_model());
    assert_eq!(recorded.edits().len(), 3);
    // A document of a result keeps it, for engines that pass results on.
    let document = serde_json::to_string(&result).unwrap();
    let read: tool_runtime::ToolExecResult = serde_json::from_str(&document).unwrap();
    assert_eq!(read.to_model(), result.to_model());
    assert!(!document.contains("secret"), "{document}");
}

/// Lets its client pick a place.
#[tool(name = "letters__pick", effect = read_only, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"])]
fn pick(
    /// From where on.
    from: String,
) -> Result<String, ToolError> {
    Ok(from)
}

/// The client's result comes in a later request, and in another process.
#[tokio::test]
async fn a_result_of_a_client_says_what_the_client_got() {
    let policy = "allowed_tools = [\"letters__pick\"]\nrequire_approval_for_tools = [\"letters__pick\"]";
    let store = std::sync::Arc::new(tool_runtime::store::MemoryStore::new());
    let runner = || {
        let catalog = ToolCatalog::builder().tool::<pick>().build().unwrap();
        let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
        runner.store(std::sync::Arc::clone(&store)).build().unwrap()
    };
    let grace = Decider::new("grace").tenant("acme");
    for (id, fails) in [("done", false), ("failed", true)] {
        let options = || RunOptions::new().principal("ada").tenant("acme").run_id(id);
        let first = runner().run(options());
        let waits = first.exec(tool_runtime::ToolCall::text(id, "letters__pick", r#"{"from":"Oslo"}"#)).await;
        assert_eq!(waits.outcome(), tool_runtime::Outcome::ApprovalRequired);
        let edited = ApprovalDecision::ApproveEdited(r#"{"from":"Rome"}"#.to_owned());
        let waits = first.resume_shown(id, edited, &grace).await.unwrap();
        assert_eq!((waits.outcome(), waits.executed()), (tool_runtime::Outcome::ClientRequired, true));
        assert_eq!(waits.value().unwrap().get(), r#""Rome""#);
        let run = runner().run(options());
        let result = if fails { run.client_failed(id).await } else { run.client_result(id, r#""Bari""#).await };
        let note = r#"A person changed `from` before it ran: `from` is "Rome"."#;
        let (result, note) =
            (result.unwrap().to_model(), if fails { note.replace('"', "\\\"") } else { note.to_owned() });
        assert!(result.contains(&note), "{result}");
        assert_eq!(run.recorded(&id.into()).await.unwrap().unwrap().to_model(), result);
    }
}
