//! Ranking by BM25F: a word counts more if it is rare, counts more in some fields than in others, and adds less with
//! each repetition.

use std::collections::HashMap;

use crate::catalog::pick::fields::{FIELDS, PickField, SETTINGS};
use crate::catalog::pick::index::{Indexed, PickIndex, Posting, joined};
use crate::catalog::pick::words::{Word, is_function_word, weight, words};
use crate::text::cut;
use crate::tool::ToolName;

/// The parameter `k1` of BM25. With a lower value, further occurrences of a word add less.
const SATURATION: f64 = 1.1;
/// The additional weight of a word that is repeated in the query.
const REPEATED: f64 = 0.25;
/// The weight of two adjacent words, in addition to the weights of both.
const PAIR: f64 = 0.4;
/// The number of bytes of a query that are read at its beginning and at its end.
const MAX_HALF_BYTES: usize = 8 << 10;
/// The maximum number of distinct words of a query that count. The most valuable words are kept.
const MAX_WORDS: usize = 256;

/// The contribution of a word of the query to a score.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct PickReason {
    pub(super) word: String,
    pub(super) field: PickField,
    pub(super) share: f64,
}

impl PickReason {
    /// Returns the part of the definition in which the word was found: `name`, `description`, `argument`,
    /// `argument_description`, `argument_value`, `namespace` or `also`.
    pub(super) const fn field(&self) -> &'static str {
        match self.field {
            PickField::Name => "name",
            PickField::Description => "description",
            PickField::Argument => "argument",
            PickField::ArgumentDescription => "argument_description",
            PickField::ArgumentValue => "argument_value",
            PickField::Namespace => "namespace",
            PickField::Also => "also",
        }
    }
}

pub(super) struct Ranked {
    pub(super) slot: usize,
    pub(super) name: ToolName,
    /// From 0 to 1, in proportion to the best score that a tool could have for this query.
    pub(super) score: f64,
    pub(super) reasons: Vec<PickReason>,
}

/// A word of the query that occurs in some tool.
struct Wanted<'i> {
    shown: String,
    postings: &'i [Posting],
    /// The product of its rarity, its repetitions and its weight.
    worth: f64,
    /// Whether the word finds tools. A function word does not.
    finds: bool,
}

impl PickIndex {
    /// Ranks the tools whose slot `among` accepts. Only tools that have a word of the query are returned. A tool comes
    /// first if the query contains its name, because other names may consist of the same words.
    pub(super) fn rank(&self, query: &str, among: &dyn Fn(usize) -> bool, most: usize) -> Vec<Ranked> {
        let wanted = self.wanted(query);
        let possible: f64 = wanted.iter().map(|word| word.worth).sum();
        let named = self.named(query);
        let finds = possible > 0.0 && wanted.iter().any(|word| word.finds);
        if (!finds && named.is_empty()) || most == 0 {
            return Vec::new();
        }
        let discounts = self.discounts();
        let mut scores = vec![0.0_f64; self.slots()];
        let (found, ordered): (Vec<_>, Vec<_>) = wanted.iter().partition(|word| word.finds);
        for word in found.into_iter().chain(ordered) {
            for posting in word.postings {
                let Some(tool) = self.tool(posting.slot as usize) else { continue };
                if !word.finds && scores[posting.slot as usize] <= 0.0 {
                    continue;
                }
                let frequency: f64 = frequencies(posting, tool, &discounts).iter().sum();
                scores[posting.slot as usize] += word.worth * frequency / (SATURATION + frequency);
            }
        }
        // A tool that the query names wins over every score.
        named.into_iter().for_each(|slot| scores[slot] = f64::INFINITY);
        let ranked = scores.into_iter().enumerate().filter(|(slot, score)| *score > 0.0 && among(*slot));
        let mut ranked: Vec<_> = ranked
            .filter_map(|(slot, score)| {
                // Rounding keeps the order of two equal tools independent of the last bit of a logarithm.
                let score = if score.is_finite() { (score / possible * 1e6).round() / 1e6 } else { 1.0 };
                Some(Ranked { slot, name: self.tool(slot)?.name.clone(), score, reasons: Vec::new() })
            })
            .collect();
        let order = |a: &Ranked, b: &Ranked| b.score.total_cmp(&a.score).then_with(|| a.name.cmp(&b.name));
        // Selecting is linear, so that only the chosen tools are sorted.
        if ranked.len() > most {
            ranked.select_nth_unstable_by(most - 1, order);
            ranked.truncate(most);
        }
        ranked.sort_by(order);
        self.explain(&wanted, &discounts, &mut ranked);
        ranked
    }

    /// Returns the tools whose names the query contains. A name without `_` and `-` has to be the whole query.
    fn named(&self, query: &str) -> Vec<usize> {
        let is_in_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let words = halves(query).flat_map(|half| half.split(|char| !is_in_name(char)));
        words.filter(|word| word.contains(['_', '-']) || *word == query).filter_map(|word| self.slot(word)).collect()
    }

    /// Returns the words of a query that occur in no tool whose slot (the result of [`insert`](Self::insert)) `among`
    /// accepts, in their order: at most [`UNMATCHED`](Self::UNMATCHED), without function words such as `the`. A model
    /// or a person can then try other words, and an author can add the missing words with `also`.
    ///
    /// ```
    /// use tool_runtime::catalog::PickIndex;
    /// use tool_runtime::{ToolError, definition, tool};
    ///
    /// /// Lists the open tasks.
    /// #[tool(name = "tasks__list", effect = read_only, redact = ["$"])]
    /// fn list() -> Result<Vec<String>, ToolError> { Ok(Vec::new()) }
    ///
    /// let mut index = PickIndex::default();
    /// index.insert(&definition!(list)?);
    /// assert_eq!(index.unmatched("Is any task overdue?", &|_| true), ["overdue"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn unmatched(&self, query: &str, among: &dyn Fn(usize) -> bool) -> Vec<String> {
        let is_found = |stem: &str| self.postings(stem).iter().any(|posting| among(posting.slot as usize));
        let mut unmatched = Vec::new();
        for half in halves(query) {
            let found = words(half);
            let pairs: Vec<_> = found.windows(2).map(|pair| is_found(&joined(&pair[0].stem, &pair[1].stem))).collect();
            let in_pair = |at: usize| {
                [Some(at), at.checked_sub(1)].into_iter().flatten().any(|first| pairs.get(first) == Some(&true))
            };
            for (at, word) in found.iter().enumerate() {
                if unmatched.len() == Self::UNMATCHED {
                    return unmatched;
                }
                let says_something = !is_function_word(word) && !unmatched.contains(&word.folded);
                if says_something && !is_found(&word.stem) && !in_pair(at) {
                    unmatched.push(word.folded.clone());
                }
            }
        }
        unmatched
    }

    /// The maximum number of words that [`unmatched`](Self::unmatched) returns.
    pub const UNMATCHED: usize = 16;

    fn wanted(&self, query: &str) -> Vec<Wanted<'_>> {
        let mut counted: HashMap<String, (String, f64, f64, bool)> = HashMap::new();
        for half in halves(query) {
            let found = words(half);
            let mut take = |stem: String, shown: &dyn Fn() -> String, weight: f64, finds: bool| {
                if !self.postings(&stem).is_empty() {
                    counted.entry(stem).or_insert_with(|| (shown(), 0.0, weight, finds)).1 += 1.0;
                }
            };
            for pair in found.windows(2) {
                let [first, second] = pair else { continue };
                // Two adjacent words with low weights say little about a tool.
                if weight(first) < 1.0 && weight(second) < 1.0 {
                    continue;
                }
                let shown = || format!("{} {}", first.folded, second.folded);
                take(joined(&first.stem, &second.stem), &shown, PAIR, true);
            }
            for word in &found {
                let Word { folded, stem } = word;
                take(stem.clone(), &|| folded.clone(), weight(word), !is_function_word(word));
            }
        }
        let wanted = counted.into_iter().map(|(stem, (shown, count, weight, finds))| {
            let postings = self.postings(&stem);
            let worth = self.rarity(postings.len()) * (1.0 + REPEATED * count.ln()) * weight;
            (stem, Wanted { shown, postings, worth, finds })
        });
        let mut wanted: Vec<_> = wanted.collect();
        // The order is fixed, because sums of floats depend on it.
        wanted.sort_by(|(a, one), (b, other)| other.worth.total_cmp(&one.worth).then_with(|| a.cmp(b)));
        wanted.truncate(MAX_WORDS);
        wanted.into_iter().map(|(_, wanted)| wanted).collect()
    }

    /// Adds the words that contributed to the score of each ranked tool.
    fn explain(&self, wanted: &[Wanted<'_>], discounts: &[(f64, f64); FIELDS], ranked: &mut [Ranked]) {
        let places: HashMap<_, _> = ranked.iter().enumerate().map(|(at, one)| (one.slot, at)).collect();
        for word in wanted.iter().filter(|word| word.finds) {
            for posting in word.postings {
                let (Some(at), Some(tool)) = (places.get(&(posting.slot as usize)), self.tool(posting.slot as usize))
                else {
                    continue;
                };
                let frequencies = frequencies(posting, tool, discounts);
                let sum: f64 = frequencies.iter().sum();
                for (settings, frequency) in SETTINGS.iter().zip(frequencies).filter(|(_, frequency)| *frequency > 0.0)
                {
                    let share = word.worth * frequency / (SATURATION + sum);
                    ranked[*at].reasons.push(PickReason { word: word.shown.clone(), field: settings.field, share });
                }
            }
        }
        for one in ranked {
            let sum: f64 = one.reasons.iter().map(|reason| reason.share).sum();
            one.reasons.iter_mut().for_each(|reason| reason.share = (reason.share / sum * 1e3).round() / 1e3);
            one.reasons.sort_by(|a, b| b.share.total_cmp(&a.share));
        }
    }
}

/// Returns how often a word occurs in each field, scaled by the field's weight and length.
fn frequencies(posting: &Posting, tool: &Indexed, discounts: &[(f64, f64); FIELDS]) -> [f64; FIELDS] {
    std::array::from_fn(|at| match posting.counts[at] {
        0 => 0.0,
        count => {
            let (base, slope) = discounts[at];
            SETTINGS[at].weight * f64::from(count) / (base + slope * f64::from(tool.lengths[at]))
        }
    })
}

/// Returns the beginning and the end of a query, because a question comes before or after pasted text.
fn halves(query: &str) -> impl Iterator<Item = &str> {
    let first = cut(query, MAX_HALF_BYTES);
    let rest = &query[first.len()..];
    let mut from = rest.len().saturating_sub(MAX_HALF_BYTES);
    while !rest.is_char_boundary(from) {
        from += 1;
    }
    [first, &rest[from..]].into_iter()
}
