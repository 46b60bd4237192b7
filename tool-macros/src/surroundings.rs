//! Finds out whether the attribute is inside an `impl` or a `trait` block.
//!
//! `#[tool]` on a function also generates an enum. An `impl` or a `trait` block cannot contain an enum, and the
//! compiler's errors would not name the cause. A macro receives only its item, so this module reads the source file to
//! find the block around the attribute. The result only selects an error message; if it is wrong, the compiler's errors
//! remain.

use std::fs;

use proc_macro::Span;

/// Returns whether the attribute that is being expanded is in an `impl` or a `trait` block. Reads the file only if the
/// attribute is indented.
pub(crate) fn are_methods() -> bool {
    let place = Span::call_site();
    let source = || fs::read_to_string(place.local_file()?).ok();
    place.column() > 1 && source().is_some_and(|source| is_in_methods(&source, place.line(), place.column()))
}

/// Returns whether the innermost brace that is open at a line and a column, both counted from 1, belongs to an `impl`
/// or a `trait`.
fn is_in_methods(source: &str, line: usize, column: usize) -> bool {
    let Some(mut rest) = before(source, line, column) else { return false };
    let mut block = Block::default();
    let mut outer = Vec::new();
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = text(rest, &block.header) {
            block.header.push(' ');
            rest = after;
            continue;
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        match letter {
            '{' => {
                let inner = Block { has_methods: block.opens_methods(), ..Block::default() };
                outer.push(std::mem::replace(&mut block, inner));
            }
            '}' => {
                block = outer.pop().unwrap_or_default();
                block.header.clear();
            }
            _ => block.read(letter),
        }
    }
    block.has_methods
}

/// A block whose brace is open.
#[derive(Default)]
struct Block {
    has_methods: bool,
    /// The code after the last complete item in the block, without attributes.
    header: String,
    /// The number of open square brackets.
    brackets: usize,
}

impl Block {
    fn read(&mut self, letter: char) {
        match letter {
            // The semicolon in `[u8; 4]` does not end an item.
            ';' if self.brackets == 0 => return self.header.clear(),
            '[' => self.brackets += 1,
            ']' => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.header.push(letter);
        if letter == ']' && self.brackets == 0 && self.header.trim_start().starts_with('#') {
            self.header.clear();
        }
    }

    /// Whether the next `{` begins the methods of an `impl` or a `trait`.
    fn opens_methods(&self) -> bool {
        let words = self.header.split(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '#')));
        let mut words = words.filter(|word| !word.is_empty());
        let is_before = |word: &&str| matches!(*word, "pub" | "crate" | "super" | "in" | "unsafe" | "default");
        matches!(words.find(|word| !is_before(word)), Some("impl" | "trait"))
    }
}

/// Returns the source before a line and a column.
fn before(source: &str, line: usize, column: usize) -> Option<&str> {
    let mut start = 0;
    for _ in 1..line {
        start += source.get(start..)?.find('\n')? + 1;
    }
    let columns: usize = source.get(start..)?.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    source.get(..start + columns)
}

/// Returns the source after a comment, a string or a character literal. `None` if `rest` begins with none of them.
/// `before` is the code in front of it.
fn text<'a>(rest: &'a str, before: &str) -> Option<&'a str> {
    let end = |at: Option<usize>| at.and_then(|at| rest.get(at..)).unwrap_or_default();
    if rest.starts_with("//") {
        return Some(end(rest.find('\n')));
    }
    if rest.starts_with("/*") {
        return Some(end(comment(rest)));
    }
    if let Some(inner) = rest.strip_prefix('"') {
        return Some(end(closing(inner, '"').map(|at| at + 1)));
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        // `'a` in `<'a>` is a lifetime.
        let mut letters = inner.chars();
        let is_letter = letters.next()? == '\\' || letters.next() == Some('\'');
        return is_letter.then(|| end(closing(inner, '\'').map(|at| at + 1)));
    }
    let is_word = before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    let raw = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix)).filter(|_| !is_word)?;
    let inner = raw.trim_start_matches('#');
    let hashes = raw.get(..raw.len() - inner.len())?;
    let inner = inner.strip_prefix('"')?;
    let quote = format!("\"{hashes}");
    Some(inner.find(&quote).and_then(|at| inner.get(at + quote.len()..)).unwrap_or_default())
}

/// Returns the end of a block comment, in which others can be nested.
fn comment(rest: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        let ahead = rest.get(at..)?;
        let step = ahead.find(['/', '*'])?;
        let ahead = ahead.get(step..)?;
        at += step + 2;
        if ahead.starts_with("/*") {
            depth += 1;
        } else if ahead.starts_with("*/") {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at -= 1;
        }
    }
}

/// Returns the end of a literal, after its closing quote.
fn closing(inner: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in inner.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_in_methods;

    /// Checks the result for the place of the `@` in a source.
    #[track_caller]
    fn check(source: &str, expected: bool) {
        let (before, _) = source.split_once('@').unwrap();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        assert_eq!(is_in_methods(source, line, column), expected, "{source}");
    }

    #[test]
    fn methods_are_in_an_impl_or_a_trait() {
        check("impl Parts { @ }", true);
        check("#[allow(x, y[z])]\nimpl<'a> Parts<'a> for [u8; 3] {\n fn a() { \"}\"; }\n @ }", true);
        check("mod a { pub(crate) unsafe trait Parts { /* } /* } */ */ @ } }", true);
        check("impl Parts { const A: char = '}'; const B: &str = r#\"\"}\"#; // }\n @ }", true);
        check("impl Parts { fn a<'a>(b: &'a str) -> impl Fn() + 'a { || {} } @ }", true);
    }

    #[test]
    fn everything_else_is_not() {
        check("@", false);
        check("mod a { @ }", false);
        check("fn a() -> impl Fn() { @ }", false);
        check("impl Parts { fn a() { @ } }", false);
        check("impl Parts { fn a() {} } mod b { @ }", false);
        check("mod a { // impl Parts {\n @ }", false);
        check("mod a { const B: &str = \"impl Parts { \\\" {\"; @ }", false);
        check("macro_rules! a { () => { @ } }", false);
        check("}} @", false);
    }

    #[test]
    fn a_place_outside_the_source_is_nowhere() {
        assert!(!is_in_methods("impl Parts {", 9, 1));
        assert!(is_in_methods("impl Parts {", 1, 99));
    }
}
