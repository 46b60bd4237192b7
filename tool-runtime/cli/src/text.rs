//! Text for people: suggestions for misspelt names, the command that explains a refusal, and untrusted text on one
//! line.

use std::sync::Arc;

use tool_runtime::{Outcome, ToolRunner};

/// Longer names are not compared, because the comparison is quadratic.
const LONGEST_NAME: usize = 128;

/// Returns the name nearest to `wrong`, as a suggestion; of equally near names, the alphabetically first.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain_name(wrong)?;
    let near = |name: &'a str| Some((distance(&plain, &plain_name(name)?)?, strsim::osa_distance(wrong, name), name));
    names.into_iter().filter_map(near).min().map(|(_, _, name)| name)
}

/// Returns a name without case and separators, in which people often make mistakes.
fn plain_name(name: &str) -> Option<String> {
    let separator = |character: &char| matches!(character, '_' | '-' | ' ' | '.');
    let plain: String = name.chars().filter(|one| !separator(one)).flat_map(char::to_lowercase).collect();
    (name.len() <= LONGEST_NAME && !plain.is_empty()).then_some(plain)
}

/// Returns the edit distance. `None` if more than a third of the longer name differs (one edit is always accepted), and
/// the longer name neither begins nor ends with the shorter one, or the shorter one has less than three bytes.
fn distance(one: &str, other: &str) -> Option<usize> {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let edits = strsim::osa_distance(one, other);
    let contained = short.len() >= 3 && (long.starts_with(short) || long.ends_with(short));
    (contained || edits <= (long.chars().count() / 3).max(1)).then_some(edits)
}

/// Puts text on one line: each run of white space becomes one space, and quotation marks become `'`.
pub(crate) fn on_one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace(['"', '\u{201c}', '\u{201d}'], "'")
}

/// Quotes untrusted text as a word of a command for a POSIX shell.
pub(crate) fn word(text: &str) -> String {
    let word = crate::terminal::safe(text);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Formats an option with its value as words of a shell, after a space.
pub(crate) fn option(name: &str, value: &str) -> String {
    // After a space, a value that begins with `-` would be read as an option.
    let gap = if value.starts_with('-') { '=' } else { ' ' };
    format!(" {name}{gap}{}", word(value))
}

/// Returns the URL of a store for a printed command; `URL` if it may contain a password.
pub(crate) fn store_word(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return url };
    let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
    if user.contains(':') || rest.contains('?') { "URL" } else { url }
}

/// Returns the longest start of `text` that has at most `bytes` bytes and ends between characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Builds the command that explains why the policy refuses a tool. Only the person at the keyboard reads it; a model is
/// never told that a hidden tool exists.
pub(crate) struct Why {
    app: &'static str,
    tools: Vec<Arc<str>>,
    /// The options with which the same rules apply.
    options: String,
    /// The labels that rules of the policy name.
    labels: Vec<String>,
}

impl Why {
    pub(crate) fn of(app: &'static str, options: String, runner: &ToolRunner) -> Self {
        let tools = runner.catalog().specs().map(|spec| spec.name.as_str().into()).collect();
        let labels = runner.policy().named_labels().into_iter().map(ToOwned::to_owned).collect();
        Self { app, tools, options, labels }
    }

    /// Returns the command. `None` unless the policy refused a known tool.
    pub(crate) fn command(&self, outcome: Outcome, tool: &str) -> Option<String> {
        let is_refusal = matches!(outcome, Outcome::PolicyDenied | Outcome::Unavailable);
        if !is_refusal || !self.tools.iter().any(|known| **known == *tool) {
            return None;
        }
        let labels: Vec<_> = self.labels.iter().map(|label| option("--label", label)).collect();
        let labels = match &labels[..] {
            [] => String::new(),
            labels => format!(" (with{}, if the run has read such data)", labels.join(" or")),
        };
        let tool = word(tool);
        Some(format!("{} policy explain {tool}{}{labels}", self.app, self.options))
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, nearest, on_one_line, option, store_word, word};

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("allowd_tools", ["denied_tools", "allowed_tools"]), Some("allowed_tools"));
        assert_eq!(nearest("due-date", ["duedate", "due_date"]), Some("due_date"));
        assert_eq!(nearest("zone", ["title", "timezone"]), Some("timezone"));
        assert_eq!(nearest("zebra", ["mail", "money"]), None);
        assert_eq!(nearest(&"a".repeat(200), ["a"]), None);
    }

    #[test]
    fn a_word_is_quoted_for_a_shell() {
        assert_eq!(word("ada@example.org"), "ada@example.org");
        assert_eq!(word("ada's file; rm"), r"'ada'\''s file; rm'");
    }

    #[test]
    fn the_value_of_an_option_is_one_word() {
        assert_eq!(option("--tenant", "acme"), " --tenant acme");
        assert_eq!(option("--tenant", "-x"), " --tenant=-x");
        assert_eq!(option("--tenant", "-x y"), " --tenant='-x y'");
        assert_eq!(option("--tenant", "a;b\u{1b}"), r" --tenant 'a;b\u{1b}'");
    }

    #[test]
    fn a_password_is_not_in_a_command() {
        for url in ["sqlite:a?b.db", "postgres://ada@db.example:5432/app", "postgres://db.example/app"] {
            assert_eq!(store_word(url), url);
        }
        for url in ["postgres://ada:secret@db.example/app", "postgres://a:s@t@db/app", "postgres://db/app?password=s"] {
            assert_eq!(store_word(url), "URL");
        }
    }

    #[test]
    fn a_sentence_fits_into_a_cell() {
        assert_eq!(on_one_line("Deletes \u{201c}a\n b\u{201d}"), "Deletes 'a b'");
        assert_eq!((cut("aåb", 2), cut("aåb", 3), cut("aåb", 9)), ("a", "aå", "aåb"));
    }
}
