//! Writes pins into the text of a policy, so that its comments and its order stay.

use std::collections::BTreeMap;

use crate::policy::ToolPolicy;
use crate::tool::Hash;

/// The text with these pins; `None` if they cannot be written into it line by line, as into a table in one line.
pub(super) fn with_pins(text: &str, pins: &BTreeMap<String, Hash>) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, pin) in pins {
        let header = |line: &String| table(line).is_some_and(|table| table == format!("tools.{name}"));
        let new = format!("pin = \"{pin}\"");
        match lines.iter().position(header) {
            Some(at) => {
                let rest = lines.iter().skip(at + 1).take_while(|line| !line.trim_start().starts_with('['));
                let old = rest.enumerate().find(|(_, line)| {
                    line.trim_start().strip_prefix("pin").is_some_and(|rest| rest.trim_start().starts_with('='))
                });
                match old.map(|(below, _)| at + 1 + below) {
                    Some(old) => lines[old] = new,
                    None => lines.insert(at + 1, new),
                }
            }
            None => lines.extend([String::new(), format!("[tools.{name}]"), new]),
        }
    }
    let edited = lines.join("\n") + "\n";
    // What was written is read again: it is the policy of before with these pins, or it is not written.
    let (before, after) = (ToolPolicy::from_toml(text).ok()?, ToolPolicy::from_toml(&edited).ok()?);
    (before.with_pins(pins) == after).then_some(edited)
}

/// The name of the table that a line begins, without quotation marks.
fn table(line: &str) -> Option<String> {
    let name = line.trim().strip_prefix('[')?.split(']').next()?;
    (!name.starts_with('[')).then(|| name.replace(['"', '\'', ' '], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Option<String> {
        with_pins(text, &BTreeMap::from([("mcp__s__a".to_owned(), Hash([0xab; 32]))]))
    }

    #[test]
    fn pins_are_written_where_they_belong() {
        let pin = "pin = \"".to_owned() + "ab".repeat(32).as_str() + "\"";
        let old = "pin = \"".to_owned() + "0".repeat(64).as_str() + "\"";
        for (text, expected) in [
            ("# mine\nparallel = 2\n".to_owned(), format!("# mine\nparallel = 2\n\n[tools.mcp__s__a]\n{pin}\n")),
            (
                format!("[tools.mcp__s__a]\n# why\n{old}\nredact = []\n"),
                format!("[tools.mcp__s__a]\n# why\n{pin}\nredact = []\n"),
            ),
            (
                format!("[tools.\"mcp__s__a\"]\nredact = []\n[tools.mcp__s__b]\n{old}\n"),
                format!("[tools.\"mcp__s__a\"]\n{pin}\nredact = []\n[tools.mcp__s__b]\n{old}\n"),
            ),
        ] {
            assert_eq!(edited(&text), Some(expected), "{text}");
        }
        for text in ["tools.mcp__s__a.redact = []\n[limits]\n", "tools = {mcp__s__a = {redact = []}}", "not toml"] {
            assert_eq!(edited(text), None, "{text}");
        }
    }
}
