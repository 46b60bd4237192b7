//! [`IdScan`]: finds the JSON-RPC id of a message that is too long to buffer, so that its request can fail at once.

use serde_json::Value;

/// A scanner that reads a message byte by byte and stores the raw value of `id` in the outermost object.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent fact about the place in the text")]
pub(super) struct IdScan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Whether the scan is inside the value of a member of the outermost object.
    in_value: bool,
    /// The last key of the outermost object, up to [`MAX_KEY`] bytes. Its escapes are decoded at the colon.
    key: Vec<u8>,
    /// The value of `id`, up to [`MAX_ID`] bytes.
    id: Vec<u8>,
    is_request: bool,
}

/// The maximum length of an id, in bytes of JSON. A longer id is treated as absent.
const MAX_ID: usize = 256;

/// The maximum number of bytes of a key that are stored: enough for `method` with every letter written as an escape of
/// six bytes, and one more to recognise longer keys.
const MAX_KEY: usize = 6 * "method".len() + 1;

impl IdScan {
    /// Scans more of the message.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    /// Returns the id as JSON, for a message that was scanned to its end. `None` if it is neither a number nor a
    /// string.
    fn id_text(&self) -> Option<&str> {
        let id = str::from_utf8(&self.id).ok()?.trim_ascii();
        let is_whole = self.id.len() <= MAX_ID;
        let is_id = |value: &Value| value.is_number() || value.is_string();
        serde_json::from_str(id).ok().filter(is_id).filter(|_| is_whole).map(|_| id)
    }

    /// Returns the id, for a message that was scanned to its end. `None` if it is not a `u64`, as this library's ids
    /// are.
    #[cfg(feature = "mcp-client")]
    pub(super) fn id(&self) -> Option<u64> {
        serde_json::from_str(self.id_text()?).ok()
    }

    /// Returns the id of a request as JSON, for a message that was scanned to its end. `None` for any other message.
    #[cfg(feature = "mcp-server")]
    pub(super) fn request_id(&self) -> Option<&str> {
        self.id_text().filter(|_| self.is_request)
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            if self.in_string && self.depth == 1 && !self.in_value && self.key.len() < MAX_KEY {
                self.key.push(byte);
            }
            self.keep(byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.in_value {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            b':' if self.depth == 1 && !self.in_value => {
                self.in_value = true;
                self.read_key();
                if self.key == b"id" {
                    self.id.clear();
                }
                return;
            }
            _ => {}
        }
        self.keep(byte);
    }

    /// Decodes the escapes in a key, if it has any.
    fn read_key(&mut self) {
        if self.key.contains(&b'\\')
            && let Ok(written) = str::from_utf8(&self.key)
            && let Ok(key) = serde_json::from_str::<String>(&format!("\"{written}\""))
        {
            self.key = key.into_bytes();
        }
    }

    /// Stores a byte if it belongs to the value of `id`. [`id_text`](Self::id_text) later refuses an object or an
    /// array.
    fn keep(&mut self, byte: u8) {
        if self.in_value && self.key == b"id" && self.id.len() <= MAX_ID {
            self.id.push(byte);
        }
    }

    /// Handles the end of a member of the outermost object.
    fn end_member(&mut self) {
        if self.depth == 1 {
            self.is_request |= self.in_value && self.key == b"method";
            self.in_value = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "mcp-client")]
    #[test]
    fn the_id_is_found_wherever_it_is() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":12,"result":{"id":3}}"#, Some(12)),
            (r#"{"result":{"a":"}\"id\":5,","id":[4]},"id": 7 }"#, Some(7)),
            (r#"{"result":[{"id":3}]}"#, None),
            (r#"{"id":"12","result":1}"#, None),
            (r#"{"idx":1,"result":1}"#, None),
            (r#"{"x":"id","y":9}"#, None),
            (r#"{"id":-5,"result":1}"#, None),
            (r#"{"id":1.5,"result":1}"#, None),
            (r#"{"id":1e1,"result":1}"#, None),
            (r#"{"id":[5],"result":1}"#, None),
            (r#"{"id":{"id":5},"result":1}"#, None),
            (r#"{"id":18446744073709551616,"result":1}"#, None),
            ("garbage", None),
        ] {
            let mut scan = IdScan::default();
            text.as_bytes().chunks(3).for_each(|chunk| scan.push(chunk));
            assert_eq!(scan.id(), id, "{text}");
        }
    }

    #[cfg(feature = "mcp-server")]
    #[test]
    fn the_id_of_a_request_is_returned_as_it_is_written() {
        let long = format!("\"{}\"", "x".repeat(MAX_ID));
        for (id, is_id) in [
            ("-5", true),
            ("1.5", true),
            ("7 ", true),
            (r#""a\"b""#, true),
            (r#""\u00e9é""#, true),
            ("null", false),
            ("[1]", false),
            (r#"{"id":1}"#, false),
            ("5x", false),
            (&long, false),
        ] {
            let mut scan = IdScan::default();
            scan.push(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{"id":3}}}}"#).as_bytes());
            assert_eq!(scan.request_id(), is_id.then_some(id.trim()), "{id}");
        }
    }
    #[cfg(feature = "mcp-server")]
    #[test]
    fn hostile_messages_have_the_id_that_a_parser_finds() {
        let id_of = |message: &[u8], chunk: usize| {
            let mut scan = IdScan::default();
            message.chunks(chunk).for_each(|chunk| scan.push(chunk));
            scan.request_id().map(str::to_owned)
        };
        let message = |id: &str| format!(r#"{{"id":{id},"method":"m"}}"#);
        let (most, deep) = ("9".repeat(18), "[".repeat(100_000));
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        let cases: [(String, Option<String>); 20] = [
            // Keys with escapes, and keys that only resemble `id` or `method`.
            (r#"{"\u0069\u0064":5,"\u006d\u0065\u0074\u0068\u006f\u0064":"m"}"#.into(), Some("5".into())),
            (r#"{"\u0069d":5,"meth\u006Fd":"m"}"#.into(), Some("5".into())),
            (r#"{"\\u0069d":5,"method":"m"}"#.into(), None),
            (r#"{"id\u0000":5,"method":"m"}"#.into(), None),
            (r#"{"\ud800":1,"id":5,"method":"m"}"#.into(), Some("5".into())),
            (r#"{"id":5,"\u006d\u0065\u0074\u0068\u006f\u0064s":"m"}"#.into(), None),
            // The last of several ids counts.
            (r#"{"id":1,"method":"m","id":2}"#.into(), Some("2".into())),
            (r#"{"id":1,"method":"m","id":{"id":2}}"#.into(), None),
            (r#"{"id":1,"method":"m","id":null}"#.into(), None),
            // A nested id is not the id of the message.
            (r#"{"params":{"id":1,"method":"m"},"method":"m"}"#.into(), None),
            (r#"[{"id":1,"method":"m"}]"#.into(), None),
            (r#"{"id":5:6,"method":"m"}"#.into(), None),
            (r#"{"id":5 6,"method":"m"}"#.into(), None),
            (message(&text(256)), Some(text(256))),
            (message(&text(257)), None),
            (message(&format!("{}\"x\"", " ".repeat(254))), None),
            (message(&most), Some(most.clone())),
            (message("1e999"), None),
            (format!(r#"{{"params":{deep},"id":5,"method":"m"}}"#), None),
            (String::new(), None),
        ];
        for (message, id) in cases {
            let shown = message.chars().take(80).collect::<String>();
            for chunk in [1, 2, 3, 7, message.len().max(1)] {
                assert_eq!(id_of(message.as_bytes(), chunk), id, "{chunk}: {shown}");
            }
        }
        // Invalid UTF-8, in the id and in another member.
        assert_eq!(id_of(b"{\"id\":\"\xff\",\"method\":\"m\"}", 1), None);
        assert_eq!(id_of(b"{\"\xff\\u0069\":\"\xff\",\"id\":5,\"method\":\"m\"}", 1), Some("5".to_owned()));
    }
}
