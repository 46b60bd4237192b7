//! Writes text, reasoning, sources, files and data.

use crate::wire::ui::Protocol;
use crate::wire::ui::call::Call;
use crate::wire::ui::frame::{Frame, Part, Words};
use crate::wire::ui::keys;
use crate::wire::ui::order::Order;

impl Order {
    pub(super) fn add_words(&mut self, words: Words, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin_step();
        if self.words.as_ref().is_some_and(|(other, _)| *other != words) {
            self.end_words();
        }
        let (_, part) = self.words.take().unwrap_or_else(|| (words, self.start_words(words)));
        self.write(&Frame::Words { words, part: &part, text });
        self.words = Some((words, part));
    }

    fn start_words(&mut self, words: Words) -> Part {
        let id = self.make_id(if words == Words::Text { "text" } else { "reasoning" });
        if words == Words::Text && self.carrier.is_none() {
            self.carrier = Some(id.clone());
        }
        let part = Part { index: self.next_part(), id, name: String::new(), dynamic: false };
        self.write(&Frame::WordsStart(words, &part));
        part
    }

    pub(super) fn end_words(&mut self) {
        if let Some((words, part)) = self.words.take() {
            self.write(&Frame::WordsEnd(words, &part));
        }
    }

    pub(super) fn add_source(&mut self, id: &str, url: Option<&str>, title: Option<&str>) {
        if url.is_none_or(is_web) {
            self.begin_step();
            let index = self.next_part();
            self.write(&Frame::Source { index, id, url, title });
        }
    }

    pub(super) fn add_file(&mut self, media_type: &str, url: &str) {
        if !is_web(url) && !has_scheme(url, "data:") {
            return;
        }
        if !self.in_step && self.protocol == Protocol::UiMessageStream && self.calls.iter().any(Call::is_unheard) {
            // The file would begin a step, after which the arguments of an earlier call cannot be written.
            self.files.push((media_type.to_owned(), url.to_owned()));
            return;
        }
        self.begin_step();
        self.write_file(media_type, url);
    }

    /// Writes the files that arrived before the step.
    pub(super) fn write_files(&mut self) {
        for (media_type, url) in std::mem::take(&mut self.files) {
            self.write_file(&media_type, &url);
        }
    }

    fn write_file(&mut self, media_type: &str, url: &str) {
        let index = self.next_part();
        self.write(&Frame::File { index, media_type, url });
    }

    pub(super) fn add_data(&mut self, name: &str, id: Option<&str>, value: &str) {
        self.begin_step();
        let index = self.next_part();
        self.write(&Frame::Data { index, name, id, value: &keys::whole(value) });
    }

    pub(super) fn next_part(&mut self) -> usize {
        self.parts += 1;
        self.parts - 1
    }

    /// Generates an id for text or reasoning. In AG-UI, it must be unique in the thread.
    fn make_id(&mut self, kind: &str) -> String {
        self.named += 1;
        let prefix = if self.protocol == Protocol::AgUi { &self.run.run } else { kind };
        format!("{prefix}-{}", self.named)
    }

    /// The id of the message that the calls of this step belong to: its first text, or an empty message.
    pub(super) fn carrier(&mut self) -> Option<String> {
        if self.protocol == Protocol::AgUi && self.carrier.is_none() {
            self.carrier = Some(self.make_id(""));
        }
        self.carrier.clone()
    }
}

/// Whether the URL is a web address, which a browser fetches without executing it.
fn is_web(url: &str) -> bool {
    has_scheme(url, "https:") || has_scheme(url, "http:")
}

fn has_scheme(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
}
