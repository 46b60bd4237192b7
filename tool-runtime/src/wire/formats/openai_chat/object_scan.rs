//! [`ObjectScan`]: finds out whether growing argument text is one whole object.

use serde::de::IgnoredAny;

/// The scan of a text that grows. Each byte is read once, however often [`is_whole`](Self::is_whole) is called.
#[derive(Default)]
pub(super) struct ObjectScan {
    state: State,
    /// The number of bytes read.
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The object has not ended.
    #[default]
    Open,
    /// The object ended, and was not parsed yet.
    Ended,
    Whole,
    /// The text is not one object, and further text cannot make it one.
    Broken,
}

impl ObjectScan {
    /// Whether a text is one whole object. It must begin with the text of the previous call of this method.
    pub(super) fn is_whole(&mut self, text: &str) -> bool {
        for byte in text.bytes().skip(self.at) {
            if self.state == State::Broken {
                break;
            }
            self.at += 1;
            self.step(byte);
        }
        if self.state == State::Ended {
            let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
            self.state = if is_json { State::Whole } else { State::Broken };
        }
        self.state == State::Whole
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' if self.depth == 0 && self.state == State::Open => self.depth = 1,
            _ if self.depth == 0 => self.state = State::Broken,
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = State::Ended;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans after each piece. Returns the last result and the number of bytes read.
    fn asked<'a>(pieces: impl Iterator<Item = &'a str>) -> (bool, usize) {
        let (mut scan, mut text, mut is_whole) = (ObjectScan::default(), String::new(), false);
        for piece in pieces {
            text.push_str(piece);
            is_whole = scan.is_whole(&text);
            assert_eq!(
                is_whole,
                text.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(&text).is_ok(),
                "{text}"
            );
        }
        (is_whole, scan.at)
    }

    #[test]
    fn an_object_is_whole_at_its_end_only() {
        for (text, expected) in [
            (r#"{"a":{"b":[1,"}\"]"]}}"#, true),
            (r#"{"a":"}"}"#, true),
            ("  {}", true),
            ("{} x}", false),
            ("{}{}", false),
            ("[{}", false),
            (r#"{"a":]}"#, false),
            (r#"{"a"}"#, false),
        ] {
            let pieces = (0..text.len()).map(|at| &text[at..=at]);
            assert_eq!(asked(pieces).0, expected, "{text}");
        }
    }

    #[test]
    fn each_byte_is_read_once() {
        let long = format!("{{\"k\":\"{}", "x".repeat(10_000));
        let (is_whole, read) = asked([long.as_str()].into_iter().chain(["{}"; 100]));
        assert_eq!((is_whole, read), (false, long.len() + 200));
        // Text that can never become an object is not read further.
        let (is_whole, read) = asked([long.as_str(), "\"} x}"].into_iter().chain(["{}"; 100]));
        assert_eq!((is_whole, read), (false, long.len() + 4));
    }
}
