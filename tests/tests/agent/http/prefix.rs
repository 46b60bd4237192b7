//! Bodies for a provider's cache: the beginning stays the same from turn to turn, and its end is marked.

use tool_runtime::agent::{Agent, SavedConversation};
use tool_runtime::catalog::PickOptions;

use super::*;

/// A mark for the cache, which moves with the last message and is not a part of the cached text.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The bodies of five requests in one conversation that is saved, restored in another runner and continued.
async fn bodies(format: Format, settings: RequestSettings) -> Vec<String> {
    let double = |id: &str| Turn::calls([(id, "rig__double", r#"{"n":1}"#), ("x", "rig__fail", "{}")]);
    let turns = [double("c1"), Turn::text("2"), double("c2"), double("c3"), Turn::text("2")];
    let server = Server::start(turns.map(|turn| Reply::stream(&turn.stream(format)))).unwrap();
    let runner = || {
        let policy = ToolPolicy::allow(["rig__double", "rig__fail", "rig__cursor"]);
        ToolRunner::builder(tests::world::tools().build().unwrap(), policy).build().unwrap()
    };
    let agent = Agent::new(client(format, &server).build().unwrap()).instructions("Be brief.").settings(settings);
    let mut conversation = agent.converse(runner().run(RunOptions::new()));
    assert!(matches!(conversation.send("Double 1.").await, TurnOutcome::Answered { .. }));
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent.restore(&runner(), RunOptions::new(), saved).await.unwrap();
    assert!(matches!(conversation.send("And again.").await, TurnOutcome::Answered { .. }));
    server.asked().into_iter().map(|asked| asked.body).collect()
}

/// The key of the messages.
const fn messages(format: Format) -> &'static str {
    match format {
        Format::OpenAiResponses => "input",
        Format::Gemini => "contents",
        _ => "messages",
    }
}

/// Where the list of a key begins and ends in the text of a body.
fn list(body: &str, key: &str) -> std::ops::Range<usize> {
    // The list is text that this library wrote. It ends where its outermost bracket closes.
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
    start..start + end.unwrap()
}

/// The body up to the end of its last message.
fn prefix(format: Format, body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap();
    assert!(!value[messages(format)].as_array().unwrap().is_empty());
    body[..list(body, messages(format)).end].replace(MARK, "")
}

/// The tools, the messages, and the rest of a body.
fn pieces(format: Format, body: &str) -> [String; 3] {
    // The mark comes first in a tool, and last in a message.
    let (_, mark) = MARK.split_at(1);
    let mut rest = body.replace(MARK, "").replace(&format!("{mark},"), "");
    let key = if format == Format::Gemini { "functionDeclarations" } else { "tools" };
    let mut take = |key| {
        let range = list(&rest, key);
        let piece = rest[range.clone()].to_owned();
        rest.replace_range(range, "");
        piece
    };
    let (tools, messages) = (take(key), take(messages(format)));
    [tools, messages, rest]
}

#[tokio::test]
async fn picked_tools_are_appended_and_nothing_before_them_changes() {
    let runner = || {
        let allowed = ["rig__double", "rig__fail", "rig__cursor", "tools__search"];
        let search = tool_runtime::registration::DynamicTool::search_tools();
        let catalog = tests::world::tools().dynamic(search).build().unwrap();
        ToolRunner::builder(catalog, ToolPolicy::allow(allowed)).build().unwrap()
    };
    for &format in Format::ALL {
        let turns = [
            Turn::calls([("c1", "rig__double", r#"{"n":1}"#)]),
            Turn::calls([("c2", "tools__search", r#"{"query":"double a number","limit":1}"#)]),
            Turn::calls([("c3", "rig__double", r#"{"n":1}"#)]),
            Turn::text("2"),
            Turn::text("No."),
        ];
        let server = Server::start(turns.map(|turn| Reply::stream(&turn.stream(format)))).unwrap();
        let model = client(format, &server).build().unwrap();
        let agent = Agent::new(model).instructions("Be brief.").pick(PickOptions::new(1).always(["rig__cursor"]));
        let mut conversation = agent.converse(runner().run(RunOptions::new()));
        assert!(matches!(conversation.send("Hello.").await, TurnOutcome::Answered { .. }), "{format}");
        let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
        let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
        let mut conversation = agent.restore(&runner(), RunOptions::new(), saved).await.unwrap();
        assert!(matches!(conversation.send("Does it always fail?").await, TurnOutcome::Answered { .. }), "{format}");
        let bodies: Vec<_> = server.asked().iter().map(|asked| pieces(format, &asked.body)).collect();
        let names = |tools: &str| {
            let all = ["rig__cursor", "rig__double", "rig__fail", "tools__search"];
            let mut found: Vec<_> = all.iter().filter_map(|name| Some((tools.find(name)?, *name))).collect();
            found.sort_unstable();
            found.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
        };
        let first = ["rig__cursor", "tools__search"];
        let found = ["rig__cursor", "tools__search", "rig__double"];
        let all = ["rig__cursor", "tools__search", "rig__double", "rig__fail"];
        let offered: Vec<_> = bodies.iter().map(|[tools, ..]| names(tools)).collect();
        assert_eq!(offered, [&first[..], &first, &found, &found, &all], "{format}");
        for pair in bodies.windows(2) {
            let [[tools, messages, rest], [more_tools, more_messages, same]] = pair else { panic!("two") };
            assert!(more_tools.starts_with(tools), "{format}\n{tools}\n{more_tools}");
            assert!(more_messages.starts_with(messages), "{format}\n{messages}\n{more_messages}");
            assert_eq!(rest, same, "{format}");
        }
    }
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
