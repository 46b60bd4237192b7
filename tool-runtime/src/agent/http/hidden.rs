//! [`Hidden`]: masks the secrets of a request in errors. The MCP client uses it too.

use reqwest::Url;

use crate::agent::http::settings::Settings;
use crate::capability::Secret;
use crate::wire::{Decoded, ErrorCode, WireError};

/// The minimum length of a secret. A shorter text would match parts of ordinary sentences.
const SHORTEST: usize = 4;

/// The minimum length of a part of a secret. Shorter parts, such as `Bearer`, are not masked on their own.
const PIECE: usize = 8;

/// The secrets that the application set: the key, the values of headers, and the credentials in the base URL. Some
/// servers repeat them in their errors.
#[derive(Default)]
pub(crate) struct Hidden(Vec<(Secret<String>, &'static str)>);

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
    pub(crate) fn hide(&mut self, text: &str, word: &'static str) {
        // A server may repeat only the token of `Bearer ..`, and may escape it as JSON.
        let pieces = text.split([' ', ';', ',', '=', ':']).filter(|piece| piece.len() >= PIECE);
        for text in [text].into_iter().chain(pieces).filter(|text| text.len() >= SHORTEST) {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            let escaped = quoted.trim_matches('"');
            for text in [text, escaped] {
                self.0.push((Secret::new(text.to_owned()), word));
            }
        }
        // The longest first, so that no part of a longer secret remains.
        self.0.sort_by_key(|(text, _)| std::cmp::Reverse(text.expose().len()));
        self.0.dedup_by(|one, other| one.0.expose() == other.0.expose());
    }

    /// Returns the text with the secrets masked, including the beginning of a secret at the end of a text that was cut.
    pub(crate) fn mask(&self, mut text: String) -> String {
        for (secret, word) in &self.0 {
            let secret = secret.expose().as_str();
            if text.contains(secret) {
                text = text.replace(secret, word);
            }
            let begun = secret.char_indices().map(|(at, _)| at).skip_while(|at| *at < SHORTEST);
            let begun = begun.filter_map(|at| secret.get(..at)).filter(|begun| text.ends_with(begun)).last();
            if let Some(begun) = begun {
                text.truncate(text.len() - begun.len());
                text.push_str(word);
            }
        }
        text
    }

    /// Returns the answer with the secrets masked in its error and its finish reason.
    pub(super) fn mask_answer(&self, mut decoded: Decoded) -> Decoded {
        decoded.provider_finish = decoded.provider_finish.map(|word| self.mask(word));
        decoded.error = decoded.error.map(|error| WireError {
            message: error.message.map(|text| self.mask(text)),
            provider_code: error.provider_code.map(|code| match code {
                ErrorCode::Text(text) => ErrorCode::Text(self.mask(text)),
                number @ ErrorCode::Number(_) => number,
            }),
            ..error
        });
        decoded
    }
}
