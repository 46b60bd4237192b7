//! Conversations by the number of turns that they have had.

use std::sync::Arc;

use async_trait::async_trait;
use divan::Bencher;
use tests::server::{Reply, Server};
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, TurnOutcome};
use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
use tool_runtime::wire::{Decoded, Format, Message};
use tool_runtime::{RunOptions, ToolPolicy, ToolRunner};
use tool_runtime_sql::{SqlOptions, SqlStore};

use crate::{ANSWER, catalog, runner, runtime};

const TURNS: [usize; 4] = [1, 10, 100, 1_000];

/// Answers without reading the request.
struct Quick;

#[async_trait]
impl ModelClient for Quick {
    fn name(&self) -> &'static str {
        "instant"
    }

    async fn complete(&self, _: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let mut decoder = Format::OpenAiChat.decoder();
        decoder.push_with(ANSWER.as_bytes(), show);
        Ok(decoder.finish())
    }
}

fn send_once_more(bencher: Bencher, turns: usize, model: impl ModelClient + 'static) {
    let runtime = runtime();
    let mut conversation = Agent::new(model).converse(runner(10).run(RunOptions::new()));
    let mut send = || {
        let ended = runtime.block_on(conversation.send("What is there to do today, and who is it for?"));
        assert!(matches!(ended, TurnOutcome::Answered { .. }));
    };
    (0..turns).for_each(|_| send());
    bencher.bench_local(send);
}

#[divan::bench(args = TURNS, sample_count = 20, sample_size = 1)]
fn d_send_once_more(bencher: Bencher, turns: usize) {
    send_once_more(bencher, turns, Quick);
}

/// The same over loopback, where each request contains the whole history. Each sample is one turn longer than the
/// previous one.
#[divan::bench(args = TURNS, sample_count = 20, sample_size = 1)]
fn d_send_over_http(bencher: Bencher, turns: usize) {
    let server = Server::start([Reply::stream(ANSWER)]).unwrap();
    let model = HttpModel::builder(Format::OpenAiChat, server.url(), "m").build().unwrap();
    send_once_more(bencher, turns, model);
}

/// Adds one turn. A SQLite file keeps the conversation before the model is asked and after its answer.
#[divan::bench(args = TURNS, sample_count = 20, sample_size = 1)]
fn d_step_in_sqlite(bencher: Bencher, turns: usize) {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let opened = SqlStore::sqlite(folder.path().join("store.db"), SqlOptions::new());
    let store = runtime.block_on(opened).unwrap();
    let policy = ToolPolicy::allow((0..10).map(|at| format!("bench__tool_{at}")));
    let runner = ToolRunner::builder(catalog(10), policy).store(Arc::new(store)).build().unwrap();
    let mut conversation = Agent::new(Quick).converse(runner.run(RunOptions::new()));
    let mut leased = runtime.block_on(async {
        for _ in 0..turns {
            conversation.send("What is there to do today, and who is it for?").await;
        }
        let saved = conversation.save().await.unwrap();
        RunQueue::new(&runner).begin(&saved, "bench").await.unwrap()
    });
    bencher.bench_local(|| {
        let input = Input::from("What is there to do today, and who is it for?");
        runtime.block_on(leased.receive(&mut conversation, input)).unwrap()
    });
}

fn history(turns: usize) -> Vec<Message> {
    let turn = |at: usize| {
        let arguments = r#"{"id":"doc-17","title":"A title of a few words","count":3,"tags":["one","two"]}"#;
        let id = format!("call_{at}");
        [
            Message::user("What is there to do today, and who is it for?"),
            Message::Assistant(vec![Part::Call(CallMessage::new(id.clone(), "bench__tool_1", arguments))]),
            Message::Result(ResultMessage::new(id, r#"{"title":"A title of a few words"}"#)),
            Message::assistant("There is one document, and it has a new title now."),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

fn formats() -> impl Iterator<Item = (Format, usize)> {
    Format::ALL.iter().flat_map(|format| [1, 100].map(|turns| (*format, turns)))
}

#[divan::bench(args = formats())]
fn e_encode_history(bencher: Bencher, (format, turns): (Format, usize)) {
    let history = history(turns);
    bencher.bench(|| format.encode_messages(&history, None));
}
