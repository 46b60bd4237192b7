//! Files of users and of tools in the requests of a conversation, before and after a restart.

use std::sync::Arc;

use async_trait::async_trait;
use office_tools::Failure;
use office_tools::time::Clock;
use office_tools::weather::{Climate, Day, Forecast, print_forecast};
use serde_json::json;
use tool_runtime::Capabilities;
use tool_runtime::agent::{Input, SavedConversation};
use tool_runtime::media::Media;

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

struct Noon;

impl Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

#[async_trait]
impl Climate for Noon {
    async fn forecast(&self, city: &str, first: jiff::civil::Date, _: u8) -> Result<Forecast, Failure> {
        let day = Day { date: first, high: 30.5, low: 20.0, rain: 0.25 };
        Ok(Forecast { city: city.to_owned(), source: "table (of means)".to_owned(), days: vec![day] })
    }
}

fn runner() -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<print_forecast>().build().unwrap();
    let noon = Arc::new(Noon);
    let capabilities = Capabilities::new().with::<dyn Clock>(Arc::clone(&noon) as _).with::<dyn Climate>(noon);
    let policy = ToolPolicy::allow(["weather__print_forecast"]);
    ToolRunner::builder(catalog, policy).capabilities(capabilities).build().unwrap()
}

#[tokio::test]
async fn files_of_users_and_tools_are_sent_before_and_after_a_restart() {
    let print = Turn::calls([("c1", "weather__print_forecast", r#"{"city":"São Paulo","unit":"celsius"}"#)]);
    let turns = [print, Turn::text("Warm."), Turn::text("Still warm.")];
    let server = Server::start(turns.map(|turn| Reply::stream(&turn.stream(Format::Anthropic)))).unwrap();
    let agent = || Agent::new(client(Format::Anthropic, &server).build().unwrap());
    let mut conversation = agent().converse(runner().run(RunOptions::new()));
    let map = Media::file("map.png", PNG).unwrap();
    let input = Input::new().text("Print the forecast for this place.").media(map);
    let ended = conversation.receive(input).await.unwrap();
    assert!(matches!(&ended, TurnOutcome::Answered { text } if text == "Warm."), "{ended:?}");

    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    drop(conversation);
    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let mut conversation = agent().restore(&runner(), RunOptions::new(), saved).await.unwrap();
    assert!(matches!(conversation.send("And now?").await, TurnOutcome::Answered { .. }));

    let bodies: Vec<Value> = server.asked().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect();
    let picture = &bodies[0]["messages"][0]["content"][0];
    let data = picture["source"]["data"].as_str().unwrap();
    assert_eq!((&picture["type"], data), (&json!("image"), "iVBORw0KGgoAAAANSUhEUg=="));
    for body in &bodies[1..] {
        let messages = &body["messages"];
        assert_eq!(messages[0]["content"][0], *picture);
        let result = &messages[2]["content"][0];
        assert_eq!(result["tool_use_id"], "c1", "{messages}");
        assert_eq!(result["content"][0], json!({ "type": "text", "text": r#"{"city":"São Paulo","days":1}"# }));
        let document = &result["content"][1];
        assert_eq!((&document["type"], &document["title"]), (&json!("document"), &json!("forecast.pdf")), "{messages}");
        let media = Media::base64("application/pdf", document["source"]["data"].as_str().unwrap()).unwrap();
        assert!(media.size() > 500);
    }
    // The file is in the requests, but neither in logs nor in records.
    assert!(!format!("{conversation:?}").contains("iVBOR"));
}
