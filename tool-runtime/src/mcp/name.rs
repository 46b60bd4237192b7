//! The rules of MCP for the names of tools.

/// The longest name, in bytes.
const MAX_BYTES: usize = 128;

/// Whether a name consists of 1 to 128 ASCII letters, digits, `_`, `.` and `-`, so that every client accepts it.
pub(super) fn is_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_specification() {
        for name in ["a", "DATA_EXPORT_v2", "admin.tools.list", "office__send-mail", &"n".repeat(128)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a/b", "ä", "a\n", &"n".repeat(129)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
