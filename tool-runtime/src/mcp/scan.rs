//! [`IdScan`]: finds the id of a message that is too long to be stored, so that its request fails at once.

/// Reads a message byte by byte and remembers the number or text under `id` of the outermost object.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent fact about the place in the text")]
pub(super) struct IdScan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The scan is after a colon of the outermost object.
    in_value: bool,
    /// The beginning of the last key of the outermost object.
    key: Vec<u8>,
    number: Option<u64>,
    /// The value of `id` as it is written, if it is a string.
    text: Option<String>,
    id: Option<u64>,
    is_request: bool,
}

/// The longest id that is a string, in bytes.
#[cfg(feature = "mcp-server")]
const MAX_TEXT: usize = 256;

impl IdScan {
    /// Scans more of the message.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    /// Returns the id, once the message has ended.
    #[cfg(feature = "mcp-client")]
    pub(super) const fn id(&self) -> Option<u64> {
        self.id
    }

    /// Returns the id of a request as JSON, once the message has ended. `None` for any other message.
    #[cfg(feature = "mcp-server")]
    pub(super) fn request_id(&self) -> Option<String> {
        let text = self.text.as_deref().map(|text| format!("\"{text}\""));
        self.id.map(|id| id.to_string()).or(text).filter(|_| self.is_request)
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            // Seven bytes suffice: they distinguish `id` and `method` from all longer keys.
            if self.in_string && self.depth == 1 && !self.in_value && self.key.len() < 7 {
                self.key.push(byte);
            }
            #[cfg(feature = "mcp-server")]
            if self.in_string && self.is_id() {
                match &mut self.text {
                    Some(text) if byte.is_ascii() && text.len() < MAX_TEXT => text.push(char::from(byte)),
                    text => *text = None,
                }
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.in_value {
                    self.key.clear();
                } else if self.is_id() {
                    self.text = Some(String::new());
                }
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.settle();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.in_value = true,
            b',' if self.depth == 1 => self.settle(),
            b'0'..=b'9' if self.depth == 1 && self.in_value => {
                let digit = u64::from(byte - b'0');
                self.number = self.number.unwrap_or(0).checked_mul(10).and_then(|number| number.checked_add(digit));
            }
            _ => {}
        }
    }

    /// Whether the scan is in the value of the outermost object's `id`.
    fn is_id(&self) -> bool {
        self.depth == 1 && self.in_value && self.key == b"id"
    }

    /// Handles the end of a member of the outermost object.
    fn settle(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.is_id() {
            self.id = self.number;
        }
        self.is_request |= self.in_value && self.key == b"method";
        (self.in_value, self.number) = (false, None);
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
            ("garbage", None),
        ] {
            let mut scan = IdScan::default();
            text.as_bytes().chunks(3).for_each(|chunk| scan.push(chunk));
            assert_eq!(scan.id(), id, "{text}");
        }
    }
}
