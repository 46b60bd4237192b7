//! A notifier as a separate process, for the test that kills it: `shared-notifier STORE URL`. It sends the notices of
//! the store to the URL.

#![allow(clippy::expect_used, clippy::panic, reason = "a test process says what it expects")]

use tests::kills;
use tests::server::WEBHOOK_SECRET;
use tool_runtime::agent::http::Notifier;

#[tokio::main]
async fn main() {
    let words: Vec<_> = std::env::args().collect();
    let [_, store, url] = words.as_slice() else { panic!("two words") };
    let notifier = Notifier::new(kills::open(store).await, url, [WEBHOOK_SECRET]).expect("a webhook");
    notifier.run(std::future::pending()).await;
}
