//! [`quoted`]: quotes an untrusted value inside a sentence.

use crate::text::is_invisible;

/// Returns a text between `“` and `”`, on one line and with at most `most` characters. The text cannot close the
/// quotes. If it was cut, its length follows after the quotes.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    let (mut shown, whole) = cleaned(text, most);
    if shown.chars().any(is_right_to_left) {
        // Isolates the text, so that it does not reorder the characters after it.
        shown = format!("\u{2068}{shown}\u{2069}");
    }
    if whole {
        format!("“{shown}”")
    } else {
        format!("“{shown}…” (cut, {} characters)", text.chars().count())
    }
}

/// Returns the text that [`quoted`] puts between quotes, with the mark of a cut within `most` characters.
pub(crate) fn plain(text: &str, most: usize) -> String {
    match cleaned(text, most) {
        (shown, true) => shown,
        (shown, false) => shown.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Replaces quotes with `'`, and each run of white space and control characters with one space. Removes such runs at
/// both ends, and all other invisible characters. Also returns whether the whole text fits.
fn cleaned(text: &str, most: usize) -> (String, bool) {
    let (mut shown, mut count, mut gap) = (String::new(), 0, false);
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            gap = count > 0;
        } else if !is_invisible(character) {
            count += 1 + usize::from(gap);
            if count > most {
                return (shown, false);
            }
            if std::mem::take(&mut gap) {
                shown.push(' ');
            }
            shown.push(if is_quote(character) { '\'' } else { character });
        }
    }
    (shown, true)
}

fn is_quote(character: char) -> bool {
    matches!(
        character,
        '"' | '«' | '»' | '\u{2ba}' | '\u{2dd}' | '\u{2ee}' | '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}'
            | '\u{275d}' | '\u{275e}' | '\u{2760}' | '\u{3003}' | '\u{301d}'..='\u{301f}' | '\u{ff02}'
            | '\u{1f676}'..='\u{1f678}'
    )
}

fn is_right_to_left(character: char) -> bool {
    matches!(
        character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_value_stays_between_its_quotes() {
        for (text, expected) in [
            ("Buy milk", "“Buy milk”"),
            ("", "“”"),
            (" a\n\n b\u{2028}c\t", "“a b c”"),
            ("a” b“\"«c", "“a' b'''c”"),
            ("\u{202e}abc\u{2066}\u{200b}\u{7}d", "“abc d”"),
            ("שלום \u{202e}x", "“\u{2068}שלום x\u{2069}”"),
            ("12345678901", "“1234567890…” (cut, 11 characters)"),
            ("123456789 1", "“123456789…” (cut, 11 characters)"),
            ("123456789 ", "“123456789”"),
        ] {
            assert_eq!(quoted(text, 10), expected, "{text:?}");
        }
        assert!(quoted(&"\u{301}".repeat(100_000), 10).len() < 100);
    }
}
