//! Writes pins into the text of a policy, and keeps its comments and its order.

use std::collections::BTreeMap;

use tool_runtime::ToolPolicy;
use tool_runtime::tool::Hash;

use crate::written::PolicyFile;

/// The lines to write for a tool.
pub(super) struct Pin {
    pub(super) pin: Hash,
    /// The paths of the tool's result that its allowlist can name. The server chose the names in them.
    pub(super) paths: Vec<String>,
}

impl Pin {
    /// Returns the line of an empty allowlist, which a person completes.
    fn allowlist(&self) -> String {
        let is_plain = |path: &&String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'*' | b'$');
            !path.is_empty() && path.len() <= 64 && path.bytes().all(plain)
        };
        let paths: Vec<_> = self.paths.iter().filter(is_plain).take(20).map(String::as_str).collect();
        match paths.join(", ") {
            paths if paths.is_empty() => "redact = [] # shows nothing".to_owned(),
            paths => format!("redact = [] # shows nothing; it can name: {paths}"),
        }
    }
}

/// Returns the text with these pins; `None` if they cannot be inserted as lines, for example into an inline table.
pub(super) fn with_pins(text: &str, pins: &BTreeMap<String, Pin>) -> Option<String> {
    let written = PolicyFile::of(&ToolPolicy::from_toml(text).ok()?).ok()?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, tool) in pins {
        let pin = tool.pin;
        let allowlist = written.tool(name, "redact").is_none().then(|| tool.allowlist());
        let header = |line: &String| table(line).is_some_and(|table| table == format!("tools.{name}"));
        let new = format!("pin = \"{pin}\"");
        match lines.iter().position(header) {
            Some(at) => {
                let rest = lines.iter().skip(at + 1).take_while(|line| !line.trim_start().starts_with('['));
                let old = rest.enumerate().find(|(_, line)| {
                    line.trim_start().strip_prefix("pin").is_some_and(|rest| rest.trim_start().starts_with('='))
                });
                let at = match old.map(|(below, _)| at + 1 + below) {
                    Some(old) => {
                        lines[old] = new;
                        old
                    }
                    None => {
                        lines.insert(at + 1, new);
                        at + 1
                    }
                };
                if let Some(allowlist) = allowlist {
                    lines.insert(at + 1, allowlist);
                }
            }
            None => {
                lines.extend([String::new(), format!("[tools.{name}]"), new]);
                lines.extend(allowlist);
            }
        }
    }
    let edited = lines.join("\n") + "\n";
    // The edited text must parse to the old policy with these pins; otherwise it is refused.
    let after = ToolPolicy::from_toml(&edited).ok()?;
    let pins = pins.iter().map(|(name, tool)| (name.clone(), tool.pin)).collect();
    (written.with_pins(&pins)? == after).then_some(edited)
}

/// Returns the name of the table that a line begins, without quotation marks.
fn table(line: &str) -> Option<String> {
    let name = line.trim().strip_prefix('[')?.split(']').next()?;
    (!name.starts_with('[')).then(|| name.replace(['"', '\'', ' '], ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Option<String> {
        let paths = ["text", "line\nbreak", "", "a.*"].map(str::to_owned).to_vec();
        let pin: Hash = serde_json::from_value("ab".repeat(32).into()).unwrap();
        with_pins(text, &BTreeMap::from([("mcp__s__a".to_owned(), Pin { pin, paths })]))
    }

    #[test]
    fn pins_are_written_where_they_belong() {
        let pin = "pin = \"".to_owned() + "ab".repeat(32).as_str() + "\"";
        let old = "pin = \"".to_owned() + "0".repeat(64).as_str() + "\"";
        let empty = "redact = [] # shows nothing; it can name: text, a.*";
        for (text, expected) in [
            (
                format!("[tools.mcp__s__a]\neffect = \"read_only\"\n{old}\nmodel = []\n"),
                format!("[tools.mcp__s__a]\neffect = \"read_only\"\n{pin}\n{empty}\nmodel = []\n"),
            ),
            (
                "# mine\nparallel = 2\n".to_owned(),
                format!("# mine\nparallel = 2\n\n[tools.mcp__s__a]\n{pin}\n{empty}\n"),
            ),
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
