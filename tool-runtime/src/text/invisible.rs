//! Invisible characters, in one table. Callers choose the kinds that they accept.

/// The kind of an invisible character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvisibleKind {
    /// A control character, which a terminal may obey. Includes line breaks and tabs.
    Control,
    /// A character without width, or one that changes the direction of the text around it.
    Mark,
    /// A separator of lines or paragraphs that is not a control character.
    Break,
    /// A joiner or separator of its neighbours, which scripts and emoji need.
    Joiner,
    /// A selector for a form of the previous character, which scripts and emoji need.
    Variation,
    /// An empty character in place of a letter.
    Filler,
    /// The empty pattern of Braille, which is its space.
    Blank,
    /// A tag character, or one reserved for tags. Hidden text can be written with them.
    Tag,
}

/// Returns the kind of an invisible character. `None` if it is visible, or a common space.
pub(crate) const fn invisible_kind(character: char) -> Option<InvisibleKind> {
    Some(match character {
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => InvisibleKind::Control,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => InvisibleKind::Mark,
        '\u{2028}' | '\u{2029}' => InvisibleKind::Break,
        '\u{34f}' | '\u{200c}' | '\u{200d}' => InvisibleKind::Joiner,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            InvisibleKind::Variation
        }
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => InvisibleKind::Filler,
        '\u{2800}' => InvisibleKind::Blank,
        '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}' => InvisibleKind::Tag,
        _ => return None,
    })
}

/// Whether the character is invisible: it has an [`InvisibleKind`] other than `Break`. Control characters are included,
/// also line feeds and tabs.
pub(crate) const fn is_invisible(character: char) -> bool {
    !matches!(invisible_kind(character), None | Some(InvisibleKind::Break))
}

/// Whether a name identifies its bearer to a reader: it is not blank and has no invisible character.
pub(crate) fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.chars().any(|character| character.is_control() || is_invisible(character))
}

/// Returns a string without its invisible characters. Control characters that `keeps` accepts stay, and so do the
/// characters of the kinds `Break` and `Blank`. Scripts and emoji need joiners and variation selectors after the
/// characters that they join or change, so one of each stays there.
pub(crate) fn strip_invisible(text: &str, keeps: impl Fn(char) -> bool) -> String {
    let mut last = None;
    let kept = text.chars().filter(|one| {
        let kind = invisible_kind(*one);
        let stays = match kind {
            None | Some(InvisibleKind::Break | InvisibleKind::Blank) => true,
            Some(InvisibleKind::Control) => keeps(*one),
            Some(InvisibleKind::Variation) => last == Some(None),
            Some(InvisibleKind::Joiner) => matches!(last, Some(None | Some(InvisibleKind::Variation))),
            Some(InvisibleKind::Mark | InvisibleKind::Filler | InvisibleKind::Tag) => false,
        };
        if stays {
            last = Some(kind);
        }
        stays
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_library_calls_a_control_character_is_one() {
        for character in '\0'..=char::MAX {
            assert_eq!(
                invisible_kind(character) == Some(InvisibleKind::Control),
                character.is_control(),
                "{character:?}"
            );
        }
    }

    #[test]
    fn what_nobody_sees_is_left_out() {
        for (text, expected) in [
            ("\u{202e}fdp.exe", "fdp.exe"),
            ("a\u{200b}b\u{feff}c\u{2066}d\u{e0041}e\u{3164}f\u{ad}g\u{7}h\ti", "abcdefgh\ti"),
            ("\u{200d}a\u{200d}\u{200d}\u{200c}b\u{fe0f}\u{fe0e}", "a\u{200d}b\u{fe0f}"),
            // A family, a heart on fire, and a word of Persian.
            ("👩\u{200d}👩\u{200d}👧", "👩\u{200d}👩\u{200d}👧"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            assert_eq!(strip_invisible(text, |one| one == '\t'), expected, "{text:?}");
        }
    }

    #[test]
    fn text_is_seen_and_tricks_are_not() {
        for character in "aß日é \u{a0}\u{3000}👩❤".chars() {
            assert_eq!(invisible_kind(character), None, "{character:?}");
        }
        for (character, kind) in [
            ('\u{200d}', InvisibleKind::Joiner),
            ('\u{202e}', InvisibleKind::Mark),
            ('\u{fe0f}', InvisibleKind::Variation),
            ('\u{e0100}', InvisibleKind::Variation),
            ('\u{e0041}', InvisibleKind::Tag),
            ('\u{e0fff}', InvisibleKind::Tag),
            ('\u{3164}', InvisibleKind::Filler),
        ] {
            assert_eq!(invisible_kind(character), Some(kind), "{character:?}");
            assert!(is_invisible(character));
        }
        assert!(!is_invisible('\u{2028}'), "it is white space, which is trimmed");
    }
}
