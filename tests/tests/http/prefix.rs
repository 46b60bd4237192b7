//! What a provider's cache sees: the beginning of a body stays the same from turn to turn, and its end is marked.

use tool_runtime::agent::{Agent, SavedConversation};

use super::*;

/// A mark of the cache, which moves with the last message and is not a part of what is cached.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The bodies of five requests in one conversation that is saved, restored in another runner and continued.
async fn bodies(format: Format, settings: RequestSettings) -> Vec<String> {
    let double = |id: &str| Turn::calls([(id, "rig__double", r#"{"n":1}"#), ("x", "rig__fail", "{}")]);
    let turns = [double("c1"), Turn::text("2"), double("c2"), double("c3"), Turn::text("2")];
    let server = Server::start(turns.map(|turn| Reply::stream(&turn.stream(format)))).unwrap();
    let runner = || {
        let policy = ToolPolicy::allow(["rig__double", "rig__fail", "rig__cursor"]);
        ToolRunner::builder(tests::rig::tools().build().unwrap(), policy).build().unwrap()
    };
    let agent = Agent::new(client(format, &server).build().unwrap()).instructions("Be brief.").settings(settings);
    let mut conversation = agent.converse(runner().run(RunOptions::new()));
    assert!(matches!(conversation.send("Double 1.").await, Ended::Answered { .. }));
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent.restore(&runner(), RunOptions::new(), saved).await.unwrap();
    assert!(matches!(conversation.send("And again.").await, Ended::Answered { .. }));
    server.asked().into_iter().map(|asked| asked.body).collect()
}

/// The body up to the end of its last message.
fn prefix(format: Format, body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap();
    let key = match format {
        Format::OpenAiResponses => "input",
        Format::Gemini => "contents",
        _ => "messages",
    };
    assert!(!value[key].as_array().unwrap().is_empty());
    // The list is text of ours, and the field behind it begins at the depth of the body.
    let start = body.find(&format!("\"{key}\":[")).unwrap();
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    let end = body[start..].find(|letter| {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => {
                depth -= 1;
                return depth == 0;
            }
            _ => {}
        }
        false
    });
    body[..start + end.unwrap()].replace(MARK, "")
}

#[tokio::test]
async fn the_beginning_of_a_body_stays_the_same() {
    for &format in Format::ALL {
        let bodies = bodies(format, RequestSettings::new().temperature(0.5)).await;
        assert_eq!(bodies.len(), 5);
        let prefixes: Vec<_> = bodies.iter().map(|body| prefix(format, body)).collect();
        for pair in prefixes.windows(2) {
            let [earlier, later] = pair else { panic!("two") };
            let beginning = later.get(..earlier.len()).unwrap_or_default();
            assert_eq!(beginning, earlier, "{format}\n{earlier}\n{later}");
            assert!(later.len() > earlier.len());
        }
        // Tools are in the order of their names, whatever the order of registration, and come before the messages.
        let first = &prefixes[0];
        let places: Vec<_> = ["rig__cursor", "rig__double", "rig__fail"].map(|name| first.find(name).unwrap()).to_vec();
        assert!(places.is_sorted() && places[2] < first.find("Double 1.").unwrap(), "{first}");
    }
}

#[tokio::test]
async fn stable_blocks_are_marked_for_the_cache() {
    let marks = |value: &Value| value.to_string().matches("cache_control").count();
    let bodies_of = |settings: RequestSettings| bodies(Format::Anthropic, settings);
    for body in bodies_of(RequestSettings::new()).await {
        let body: Value = serde_json::from_str(&body).unwrap();
        let tools = body["tools"].as_array().unwrap();
        assert_eq!((marks(&body["tools"]), marks(&tools[tools.len() - 1])), (1, 1), "the last tool");
        assert_eq!(body["system"][0]["cache_control"], serde_json::json!({"type": "ephemeral"}));
        let users: Vec<_> =
            body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").collect();
        for (at, user) in users.iter().rev().enumerate() {
            let blocks = user["content"].as_array().unwrap();
            let last = marks(&blocks[blocks.len() - 1]);
            assert_eq!((marks(user), last), if at < 2 { (1, 1) } else { (0, 0) }, "the last two messages of the user");
        }
        assert!(marks(&body) <= 4, "the provider takes four");
    }
    for body in bodies_of(RequestSettings::new().cache(false)).await {
        assert!(!body.contains("cache_control"), "{body}");
    }
    for &format in Format::ALL.iter().filter(|format| **format != Format::Anthropic) {
        assert!(bodies(format, RequestSettings::new()).await.iter().all(|body| !body.contains("cache_control")));
    }
}

#[tokio::test]
async fn requests_of_a_conversation_share_a_key() {
    let keys = |bodies: Vec<String>| -> Vec<Value> {
        let body = |body: String| serde_json::from_str::<Value>(&body).unwrap()["prompt_cache_key"].clone();
        bodies.into_iter().map(body).collect()
    };
    let own = keys(bodies(Format::OpenAiResponses, RequestSettings::new()).await);
    assert!(own[0].is_string() && own.iter().all(|key| *key == own[0]), "{own:?}");
    let given = keys(bodies(Format::OpenAiResponses, RequestSettings::new().cache_key("k")).await);
    assert!(given.iter().all(|key| key == "k"), "{given:?}");
    let none = keys(bodies(Format::OpenAiResponses, RequestSettings::new().cache(false)).await);
    assert!(none.iter().all(Value::is_null), "{none:?}");
    // Compatible servers may refuse fields that they do not know.
    let chat = keys(bodies(Format::OpenAiChat, RequestSettings::new()).await);
    assert!(chat.iter().all(Value::is_null), "{chat:?}");
}
