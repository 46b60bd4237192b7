//! [`Hidden`]: masks the secrets of a request in errors. The MCP client uses it too.

use std::borrow::Cow;

use reqwest::Url;

use crate::agent::http::settings::Settings;
use crate::capability::Secret;
use crate::wire::{Decoded, ErrorCode, WireError};

/// The minimum length of a secret. A shorter text would match parts of ordinary sentences.
const SHORTEST: usize = 4;

/// The minimum length of a part of a secret. Shorter parts, such as `Bearer`, are not masked on their own.
const PIECE: usize = 8;

/// Secrets that the application set: a key or token, the values of headers, the credentials in a base URL, and the
/// environment of a process. Some servers repeat them in their errors.
#[derive(Default, Clone)]
pub(crate) struct Hidden(Vec<(Secret<String>, Cow<'static, str>)>);

impl Hidden {
    pub(super) fn of(settings: &Settings, url: &Url) -> Self {
        let mut hidden = Self::default();
        if let Some(key) = &settings.key {
            hidden.hide(key.expose(), "[key]");
        }
        for (_, value) in &settings.headers {
            hidden.hide(value.expose(), "[header]");
        }
        url.query_pairs().for_each(|(_, value)| hidden.hide(&value, "[url]"));
        let raw = url.query().into_iter().flat_map(|query| query.split('&')).filter_map(|pair| pair.split_once('='));
        raw.for_each(|(_, value)| hidden.hide(value, "[url]"));
        [url.username(), url.password().unwrap_or_default()].into_iter().for_each(|text| hidden.hide(text, "[url]"));
        hidden
    }

    /// Adds a secret and its longer parts. In masked text, `word` replaces them.
    pub(crate) fn hide(&mut self, text: &str, word: impl Into<Cow<'static, str>>) {
        let word = word.into();
        // A server may repeat only the token of `Bearer ..` or one line of a key, and may escape it as JSON.
        let pieces = text.split([' ', '\n', '\r', ';', ',', '=', ':']).filter(|piece| piece.len() >= PIECE);
        for text in [text].into_iter().chain(pieces).filter(|text| text.len() >= SHORTEST) {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            let escaped = quoted.trim_matches('"');
            for text in [text, escaped] {
                self.0.push((Secret::new(text.to_owned()), word.clone()));
            }
        }
        // The longest first, so that no part of a longer secret remains.
        self.0.sort_by(|(one, _), (other, _)| {
            let (one, other) = (one.expose(), other.expose());
            other.len().cmp(&one.len()).then_with(|| one.cmp(other))
        });
        self.0.dedup_by(|one, other| one.0.expose() == other.0.expose());
    }

    /// Returns the length of the longest secret, in bytes.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn longest(&self) -> usize {
        self.0.first().map_or(0, |(secret, _)| secret.expose().len())
    }

    /// Returns the text with the secrets masked.
    pub(crate) fn mask(&self, mut text: String) -> String {
        for (secret, word) in &self.0 {
            if text.contains(secret.expose()) {
                text = text.replace(secret.expose(), word);
            }
        }
        text
    }

    /// Masks secrets like [`mask`](Self::mask), for a text that was cut and may end inside a secret.
    pub(crate) fn mask_cut(&self, text: String) -> String {
        let mut text = self.mask(text);
        let begun = |(secret, word)| Some((begun(&text, secret)?, word));
        let begun = self.0.iter().map(|(secret, word)| (secret.expose().as_str(), word)).filter_map(begun);
        if let Some((length, word)) = begun.max_by_key(|(length, _)| *length) {
            text.truncate(text.len() - length);
            text.push_str(word);
        }
        text
    }

    /// Returns the answer with the secrets masked in its error and its finish reason.
    pub(super) fn mask_answer(&self, mut decoded: Decoded) -> Decoded {
        decoded.provider_finish = decoded.provider_finish.map(|word| self.mask_cut(word));
        decoded.error = decoded.error.map(|error| WireError {
            message: error.message.map(|text| self.mask_cut(text)),
            provider_code: error.provider_code.map(|code| match code {
                ErrorCode::Text(text) => ErrorCode::Text(self.mask_cut(text)),
                number @ ErrorCode::Number(_) => number,
            }),
            ..error
        });
        decoded
    }
}

/// Returns the length of the longest beginning of a secret at the end of a text.
fn begun(text: &str, secret: &str) -> Option<usize> {
    let lengths = secret.char_indices().map(|(at, _)| at).skip_while(|at| *at < SHORTEST);
    lengths.filter(|at| secret.get(..*at).is_some_and(|begun| text.ends_with(begun))).last()
}
