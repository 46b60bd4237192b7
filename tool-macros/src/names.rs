//! Functions on names: serde's renaming of fields, suggested names of tools, and the nearest word to a typo.

use proc_macro2::Ident;
use syn::ext::IdentExt;

/// A case of serde's `rename_all`, for fields in snake case.
#[derive(Clone, Copy)]
pub(crate) enum RenameRule {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl RenameRule {
    pub(crate) const NAMES: [(&'static str, Self); 8] = [
        ("lowercase", Self::Lower),
        ("UPPERCASE", Self::Upper),
        ("PascalCase", Self::Pascal),
        ("camelCase", Self::Camel),
        ("snake_case", Self::Snake),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("kebab-case", Self::Kebab),
        ("SCREAMING-KEBAB-CASE", Self::ScreamingKebab),
    ];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, rule)| *rule)
    }

    /// Returns the name that serde gives to a field.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Lower | Self::Snake => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => {
                let pascal = pascal(field);
                let mut letters = pascal.chars();
                letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
            }
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    let mut out = String::new();
    let mut capital = true;
    for letter in field.chars() {
        if letter == '_' {
            capital = true;
        } else if capital {
            out.push(letter.to_ascii_uppercase());
            capital = false;
        } else {
            out.push(letter);
        }
    }
    out
}

/// Returns the name without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Returns the suggested tool part of a name: `update_task` for `UpdateTask`.
pub(crate) fn snake(ident: &Ident) -> String {
    let mut out = String::new();
    for letter in plain(ident).chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Returns the known word that is closest to a typo, if one is close.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        // Short names are similar to every word. If a candidate differs in every letter, such as `a` and `p`, it is not
        // proposed.
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3) && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the Levenshtein distance in bytes.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(right.bytes()) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *cell;
            before = replaced.min(*cell + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Joins words with commas and "or": "`a`, `b` or `c`".
pub(crate) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{RenameRule, nearest, one_of};

    #[test]
    fn rename_rules_are_serdes() {
        for (rule, expected) in [
            ("lowercase", "due_date"),
            ("UPPERCASE", "DUE_DATE"),
            ("PascalCase", "DueDate"),
            ("camelCase", "dueDate"),
            ("snake_case", "due_date"),
            ("SCREAMING_SNAKE_CASE", "DUE_DATE"),
            ("kebab-case", "due-date"),
            ("SCREAMING-KEBAB-CASE", "DUE-DATE"),
        ] {
            assert_eq!(RenameRule::parse(rule).unwrap().apply("due_date"), expected, "{rule}");
        }
        assert!(RenameRule::parse("Camel").is_none());
    }

    #[test]
    fn typos_find_their_word() {
        let known = ["effect", "redact", "require_any", "p"];
        for (typo, expected) in
            [("efect", Some("effect")), ("required_any", Some("require_any")), ("colour", None), ("a", None)]
        {
            assert_eq!(nearest(typo, &known), expected, "{typo}");
        }
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
