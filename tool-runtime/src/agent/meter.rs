//! [`Meter`]: the tokens of a turn, estimated from bytes if a budget limits them and the provider does not count them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::agent::{ModelRequest, Prices};
use crate::call::Event;
use crate::media::Media;
use crate::policy::Allowance;
use crate::runner::Run;
use crate::wire::history::{Content, Part};
use crate::wire::{Decoded, DisplayEvent, Message, Usage, WireErrorKind};

/// The assumed bytes of text in a token. English has about four; code, JSON and other writing systems have fewer.
const BYTES: u64 = 3;

/// The maximum number of tokens that one image or file counts for.
const FILE: u64 = 4096;

/// The tokens of one request and its answer. They are booked on the run's budgets once: when the answer is complete, or
/// when its future is dropped.
pub(super) struct Meter {
    run: Run,
    prices: Prices,
    /// The estimated tokens of the request. `None` if no budget limits tokens or their cost.
    sent: Option<u64>,
    /// The bytes shown so far.
    shown: AtomicU64,
    is_open: AtomicBool,
}

impl Meter {
    pub(super) fn begin(run: &Run, prices: Prices, request: &ModelRequest<'_>) -> Self {
        let sent = run.has_budget(Allowance::is_of_tokens).then(|| sent(request));
        Self { run: run.clone(), prices, sent, shown: AtomicU64::new(0), is_open: AtomicBool::new(true) }
    }

    /// Counts the bytes of a part of the answer that arrived.
    pub(super) fn hears(&self, event: &DisplayEvent<'_>) {
        let bytes = match event {
            DisplayEvent::Text(text)
            | DisplayEvent::Reasoning(text)
            | DisplayEvent::ArgumentsDelta { text, .. }
            | DisplayEvent::CallStarted { name: text, .. } => text.len(),
        };
        self.shown.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Ends a request without an answer. Nothing is booked, unless a part of an answer was shown; then the drop books
    /// it.
    pub(super) fn unanswered(&self) {
        if self.shown.load(Ordering::Relaxed) == 0 {
            self.is_open.store(false, Ordering::Relaxed);
        }
    }

    /// Books an answer, and returns its tokens. `None` if the provider did not count them and no budget limits them.
    pub(super) fn answered(&self, decoded: &Decoded) -> Option<Usage> {
        let usage = match self.sent {
            Some(sent) => Some(self.completed(sent, decoded)),
            None => decoded.usage,
        };
        self.book(usage);
        usage
    }

    /// Returns the provider's counts. Missing counts, zeros and the counts of an interrupted turn are estimated.
    fn completed(&self, sent: u64, decoded: &Decoded) -> Usage {
        let mut usage = decoded.usage.unwrap_or_default();
        if usage.total_input() == 0 && sent > 0 {
            (usage.input_tokens, usage.estimated) = (sent, true);
        }
        let broke_off = decoded.error.as_ref().is_some_and(|error| error.kind != WireErrorKind::UnsupportedItem);
        let is_counted = usage.total_output() > 0 && !broke_off && !usage.provisional;
        let counts_thoughts = usage.reasoning_tokens > 0 || !self.run.has_budget(Allowance::is_of_reasoning);
        if is_counted && counts_thoughts {
            return usage;
        }
        let (mut all, mut thoughts) = (Size::default(), Size::default());
        for part in decoded.parts() {
            all.part(&part);
            if let Part::Reasoning { .. } = part {
                thoughts.part(&part);
            }
        }
        all.bytes = all.bytes.saturating_add(decoded.unkept() as u64);
        if !is_counted && usage.total_output() < all.tokens() {
            (usage.output_tokens, usage.estimated) = (all.tokens(), true);
        }
        if !counts_thoughts {
            usage.reasoning_tokens = thoughts.tokens().min(usage.total_output());
            usage.estimated |= usage.reasoning_tokens > 0;
        }
        usage
    }

    /// Books one turn, even if the provider reports no usage.
    fn book(&self, usage: Option<Usage>) {
        self.is_open.store(false, Ordering::Relaxed);
        let used = usage.unwrap_or_default();
        self.run.account(used, self.prices.cost(&used));
        if let Some(usage) = usage {
            self.run.emit(Event::Usage {
                input_tokens: usage.total_input(),
                output_tokens: usage.total_output(),
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                reasoning_tokens: usage.reasoning_tokens,
                estimated: usage.estimated,
            });
        }
    }
}

/// Books a request whose future is dropped, because the provider bills it too.
impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_open.load(Ordering::Relaxed) {
            let estimated = |sent| {
                let mut usage = Usage::new(sent, self.shown.load(Ordering::Relaxed).div_ceil(BYTES));
                usage.estimated = true;
                usage
            };
            self.book(self.sent.map(estimated));
        }
    }
}

/// Estimates the tokens of a request: its messages, its tools, and the schema of its answer.
fn sent(request: &ModelRequest<'_>) -> u64 {
    let mut size = Size::default();
    for message in request.messages {
        match message {
            Message::System(text) => size.text(text),
            Message::User(content) => content.iter().for_each(|one| match one {
                Content::Text(text) => size.text(text),
                Content::Media(media) => size.file(media),
            }),
            Message::Assistant(parts) => parts.iter().for_each(|part| size.part(part)),
            Message::Result(result) => {
                size.text(&result.content);
                result.media.iter().for_each(|media| size.file(media));
            }
        }
    }
    for spec in request.tools.specs() {
        [spec.name.as_str(), &spec.description, spec.input_schema.as_str()]
            .into_iter()
            .for_each(|text| size.text(text));
    }
    if let Some(answer) = request.answer {
        size.text(answer.input_schema);
    }
    size.tokens()
}

/// The size of text and files.
#[derive(Default)]
struct Size {
    bytes: u64,
    files: u64,
}

impl Size {
    const fn text(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
    }

    fn file(&mut self, media: &Media) {
        self.files = self.files.saturating_add((media.size() as u64).div_ceil(BYTES).min(FILE));
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text { text, .. } | Part::Reasoning { text, .. } | Part::Refusal(text) => self.text(text),
            Part::Call(call) => {
                self.text(&call.name);
                self.text(call.arguments());
            }
            Part::Media(media) => self.file(media),
            Part::Citation(_) | Part::ProviderState(_) => {}
        }
        if let Some(provider_state) = part.provider_state() {
            self.text(provider_state.json());
        }
    }

    const fn tokens(&self) -> u64 {
        self.bytes.div_ceil(BYTES).saturating_add(self.files)
    }
}
