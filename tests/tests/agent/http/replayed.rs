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

#[tokio::test]
async fn a_container_of_the_application_takes_the_place_of_the_one_in_the_history() {
    let events = Turn::text("Hm.").stream(Format::Anthropic);
    let first = events.replacen("\"delta\":{\"stop_", "\"delta\":{\"container\":{\"id\":\"container_1\"},\"stop_", 1);
    assert_ne!(first, events);
    let runner = ToolRunner::builder(ToolCatalog::builder().build().unwrap(), ToolPolicy::deny_all()).build().unwrap();
    for (given, sent) in [(None, "\"container_1\""), (Some("container_2"), "\"container_2\"")] {
        let server = Server::start([Reply::stream(&first), Reply::stream(&events)]).unwrap();
        let settings =
            given.map_or_else(RequestSettings::new, |id| RequestSettings::new().extra("container", Value::from(id)));
        let agent = Agent::new(client(Format::Anthropic, &server).build().unwrap()).settings(settings);
        let mut conversation = agent.converse(runner.run(RunOptions::new()));
        conversation.send("Hello?").await;
        conversation.send("And now?").await;
        let body = &server.asked()[1].body;
        assert_eq!(body.matches("\"container\":").count(), 1, "{body}");
        assert!(body.contains(&format!("\"container\":{sent}")), "{body}");
    }
}
