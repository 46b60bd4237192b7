//! Converts a server's own name of a tool to the name in this library.

use crate::text::{cut, invisible_kind};
use crate::tool::Hash;

/// The longest name of a tool, in bytes.
const MAX_BYTES: usize = 64;

/// The longest name that a server may use, in bytes: the protocol's limit.
const MAX_RAW_BYTES: usize = 128;

/// Returns the name of a server's tool: `mcp__<server>__<slug>`.
///
/// The slug is the server's own name if every provider accepts it. Otherwise the slug is that name, shortened, with `_`
/// in place of other characters, and followed by eight digits of its hash.
///
/// # Errors
/// The reason why the name cannot be used.
pub(super) fn name(server: &str, raw: &str) -> Result<String, &'static str> {
    if raw.is_empty() {
        return Err("the name is empty");
    }
    if raw.len() > MAX_RAW_BYTES {
        return Err("the name is longer than 128 bytes");
    }
    if raw.chars().any(|one| invisible_kind(one).is_some()) {
        return Err("the name contains a control character or an invisible character");
    }
    let prefix = format!("mcp__{server}__");
    let legal = |one: char| one.is_ascii_alphanumeric() || matches!(one, '_' | '-');
    if raw.chars().all(legal) && prefix.len() + raw.len() <= MAX_BYTES {
        return Ok(prefix + raw);
    }
    let cleaned: String = raw.chars().map(|one| if legal(one) { one } else { '_' }).collect();
    let hash = Hash::sha256(raw).to_string();
    let room = MAX_BYTES.saturating_sub(prefix.len() + 9);
    Ok(format!("{prefix}{}_{}", cut(&cleaned, room), cut(&hash, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_or_marked() {
        assert_eq!(name("s", "read_file"), Ok("mcp__s__read_file".to_owned()));
        assert_eq!(name("s", "core__add"), Ok("mcp__s__core__add".to_owned()));
        let dotted = name("s", "a.b").unwrap();
        assert!(dotted.starts_with("mcp__s__a_b_") && dotted.len() == 20, "{dotted}");
        assert_ne!(name("s", "a.b"), name("s", "a b"));
        let long = name("a-server-of-20-bytes", &"x".repeat(128)).unwrap();
        assert_eq!(long.len(), MAX_BYTES);
        assert_ne!(long, name("a-server-of-20-bytes", &"x".repeat(127)).unwrap());
        for raw in ["", "a\0b", "a\u{202e}b", "a\u{200b}b", &"x".repeat(129)] {
            assert!(name("s", raw).is_err(), "{raw:?}");
        }
    }
}
