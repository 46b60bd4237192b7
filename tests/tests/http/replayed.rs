//! Recorded turns of Anthropic over HTTP: the requests after them hold every block, in another process too.

use tests::blocks;
use tool_runtime::agent::SavedConversation;

use super::*;

fn recorded(body: &[u8]) -> Reply {
    let is_whole = body.first() == Some(&b'{');
    let kind = if is_whole { "application/json" } else { "text/event-stream" };
    Reply::body("200 OK", &format!("content-type: {kind}\r\n"), body)
}

#[tokio::test]
async fn recorded_turns_are_in_the_next_requests_before_and_after_a_restart() {
    let index = read_json(&fixtures("recorded").join("index.json"));
    let runner =
        || ToolRunner::builder(ToolCatalog::builder().build().unwrap(), ToolPolicy::deny_all()).build().unwrap();
    let mut seen = 0;
    for case in index.as_array().unwrap().iter().filter(|case| case["format"] == "anthropic") {
        let body = std::fs::read(fixtures("recorded").join(case["file"].as_str().unwrap())).unwrap();
        let turn = blocks::message(&body);
        let last = Reply::stream(&Turn::text("I see.").stream(Format::Anthropic));
        let server = Server::start([recorded(&body).in_pieces(7, Duration::ZERO), last]).unwrap();
        let agent = || Agent::new(client(Format::Anthropic, &server).build().unwrap());
        let mut conversation = agent().converse(runner().run(RunOptions::new()));
        conversation.send("Hello?").await;
        let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
        let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
        // Another process, with another runner.
        let mut restored = agent().restore(&runner(), RunOptions::new(), saved).await.unwrap();
        for conversation in [&mut conversation, &mut restored] {
            conversation.send("And now?").await;
        }
        let asked = server.asked();
        assert!(asked.len() >= 3, "{}", case["id"]);
        for asked in &asked[1..] {
            let request: Value = serde_json::from_str(&asked.body).unwrap();
            assert!(blocks::is_answered(&request, &turn), "{}\n{request}\n{turn}", case["id"]);
        }
        seen += 1;
    }
    assert!(seen >= 39, "{seen}");
}
