//! Splits text into words, in the same way for definitions and queries.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::text::cut;

/// The maximum length of a word, in bytes before folding. Longer words are cut.
const MAX_WORD_BYTES: usize = 64;

/// A word of some text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The word without case and accents, for display.
    pub(super) folded: String,
    /// The form for comparison. Words with the same stem are equal.
    pub(super) stem: String,
}

/// Splits text into words.
///
/// Names in camel case and snake case are split, and letters are split from digits. Text in a script without spaces
/// becomes overlapping pairs of characters. Compatible forms of a character (full-width letters, ligatures) are equal.
pub(super) fn words(text: &str) -> Vec<Word> {
    // NFKC makes full-width letters and ligatures equal to plain ones; ASCII has none of them.
    let normal: Cow<'_, str> = if text.is_ascii() { text.into() } else { text.nfkc().collect::<String>().into() };
    let mut splitter = Splitter { found: Vec::new(), stemmer: Stemmer::new(Algorithm::English) };
    let mut rest = normal.as_ref();
    while let Some(first) = rest.chars().next() {
        let length = if is_unspaced(first) {
            let length = prefix(rest, |char| is_unspaced(char) || is_combining_mark(char));
            splitter.pairs(&rest[..length]);
            length
        } else if first.is_alphanumeric() {
            let length = prefix(rest, |char| is_in_word(char) && !is_unspaced(char));
            splitter.run(&rest[..length]);
            // Skips the `s` of a possessive.
            let after = rest[length..].strip_prefix(['\'', '’']).and_then(|after| after.strip_prefix('s'));
            let ends = after.filter(|after| !after.starts_with(char::is_alphanumeric));
            ends.map_or(length, |after| rest.len() - after.len())
        } else {
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    splitter.found
}

/// Returns the length in bytes of the longest prefix whose characters all match.
fn prefix(text: &str, matches: impl Fn(char) -> bool) -> usize {
    text.find(|char| !matches(char)).unwrap_or(text.len())
}

fn is_in_word(char: char) -> bool {
    char.is_alphanumeric() || is_combining_mark(char)
}

/// Whether a script puts no spaces between words, or attaches particles to words, as in Korean.
const fn is_unspaced(char: char) -> bool {
    matches!(char,
        '\u{0E00}'..='\u{0EFF}' // Thai, Lao
        | '\u{1000}'..='\u{109F}' // Myanmar
        | '\u{1780}'..='\u{17FF}' // Khmer
        | '\u{3040}'..='\u{30FF}' // Hiragana, Katakana
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' // Han
        | '\u{AC00}'..='\u{D7AF}' // Hangul
    )
}

struct Splitter {
    found: Vec<Word>,
    stemmer: Stemmer,
}

impl Splitter {
    /// Splits a run of letters and digits where the case or the kind changes.
    fn run(&mut self, run: &str) {
        let mut from = 0;
        let mut before: Option<char> = None;
        let mut chars = run.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            if before.is_some_and(|before| is_border(before, char, next)) {
                self.word(&run[from..at]);
                from = at;
            }
            if !is_combining_mark(char) {
                before = Some(char);
            }
        }
        self.word(&run[from..]);
    }

    fn word(&mut self, word: &str) {
        let word = cut(word, MAX_WORD_BYTES);
        let folded: String = if word.is_ascii() {
            word.to_ascii_lowercase()
        } else {
            let letters = word.nfkd().filter(|char| !is_combining_mark(*char)).flat_map(char::to_lowercase);
            letters.fold(String::new(), |mut folded, char| {
                match plain(char) {
                    Some(plain) => folded.push_str(plain),
                    None => folded.push(char),
                }
                folded
            })
        };
        let stem = self.stemmer.stem(&folded).into_owned();
        if !stem.is_empty() {
            self.found.push(Word { folded, stem });
        }
    }

    fn pairs(&mut self, run: &str) {
        let ends: Vec<_> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let mut take = |pair: &str| self.found.push(Word { folded: pair.to_owned(), stem: pair.to_owned() });
        // A single character forms no pair, so it is kept alone.
        if ends.len() == 2 {
            take(run);
        }
        ends.windows(3).for_each(|ends| take(&run[ends[0]..ends[2]]));
    }
}

/// Whether a word ends between two characters: `getTask`, `HTTPServer`, `base64`; not within `IDs`.
fn is_border(before: char, char: char, next: Option<char>) -> bool {
    if is_combining_mark(char) {
        return false;
    }
    // `HTTPServer` splits before `Server`, but `IDs` stays whole.
    let ends_capitals = || next.is_some_and(|next| next.is_lowercase() && next != 's');
    char.is_numeric() != before.is_numeric()
        || (char.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && ends_capitals())))
}

/// Returns the usual ASCII spelling of a letter without a removable accent.
const fn plain(char: char) -> Option<&'static str> {
    Some(match char {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' => "d",
        'ł' => "l",
        'ı' => "i",
        _ => return None,
    })
}

/// Whether a word is a function word, such as `the`. Such a word finds no tool, even if it is rare in definitions. It
/// only orders tools that other words found.
pub(super) fn is_function_word(word: &Word) -> bool {
    FUNCTION_WORDS.binary_search(&word.folded.as_str()).is_ok()
}

/// The weight of a word of a query.
pub(super) fn weight(word: &Word) -> f64 {
    match word.folded.as_str() {
        _ if is_function_word(word) => 0.3,
        weak if WEAK_WORDS.binary_search(&weak).is_ok() => 0.4,
        _ => 1.0,
    }
}

/// Words that say little about the wanted tool: verbs that address the assistant, question words for a person, a place
/// or a time, and particles, as in `turn on`. Sorted.
const WEAK_WORDS: &[&str] = &[
    "get", "give", "help", "know", "let", "like", "look", "need", "on", "out", "please", "provide", "show", "tell",
    "use", "using", "want", "when", "where", "who",
];

/// English function words. Sorted.
const FUNCTION_WORDS: &[&str] = &[
    "a",
    "about",
    "also",
    "am",
    "an",
    "and",
    "any",
    "anything",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "for",
    "from",
    "had",
    "has",
    "have",
    "he",
    "her",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "may",
    "me",
    "might",
    "my",
    "not",
    "now",
    "of",
    "or",
    "our",
    "shall",
    "she",
    "should",
    "so",
    "some",
    "something",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "us",
    "was",
    "we",
    "were",
    "what",
    "which",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let stems: Vec<_> = words(text).into_iter().map(|word| word.stem).collect();
        assert_eq!(stems.join(" "), expected, "{text}");
    }

    #[test]
    fn text_becomes_words() {
        check("getTaskById", "get task by id");
        check("tasks__list_tasks", "task list task");
        check("HTTPServer parseJSON userIDs", "http server pars json user id");
        check("base64 v2 2024-01-31", "base 64 v 2 2024 01 31");
        check("Cities, queries; running ponies' boxes", "citi queri run poni box");
        check("the user's file's", "the user file");
        check("Zürich café naïve Straße Łódź", "zurich cafe naiv strass lodz");
        check("Zu\u{308}rich", "zurich");
        check("ｆｕｌｌ ﬁne", "full fine");
        check("東京の天気", "東京 京の の天 天気");
        check("雨", "雨");
        check("weather天気api", "weather 天気 api");
        check("ЗАДАЧА Ελλάδα", "задача ελλαδα");
        check("날씨 알려줘", "날씨 알려 려줘");
        for empty in ["", " \n\t", "🙂🙃 👩‍👩‍👧", "__--''’", "\u{301}\u{200b}"] {
            check(empty, "");
        }
    }

    #[test]
    fn long_words_are_cut() {
        let found = words(&"é".repeat(100_000));
        assert_eq!(found.len(), 1);
        assert!(found[0].stem.len() <= MAX_WORD_BYTES);
    }

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted() && WEAK_WORDS.is_sorted());
    }
}
