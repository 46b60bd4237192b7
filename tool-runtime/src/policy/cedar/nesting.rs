//! Limits for the size and nesting of policies in Cedar. The engine's parser is recursive, so deeply nested text would
//! overflow any stack.

/// The longest text of all policies together, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The maximum number of brackets that may be open at the same time.
const MAX_OPEN: usize = 32;

/// The maximum number of operators in one policy. Each operator can add a level of nesting. The scan counts each `if`
/// and each of the characters `&|.+-*!`, so `&&` and `||` count twice.
const MAX_OPERATORS: usize = 256;

/// Returns an error if the text is too long or too deeply nested.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_BYTES {
        return Err("the policies are longer than 64 KiB together; shorten them".to_owned());
    }
    let (mut open, mut operators) = (0_usize, 0_usize);
    let mut bytes = text.bytes().enumerate().peekable();
    let mut word = String::new();
    while let Some((at, byte)) = bytes.next() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            word.push(char::from(byte));
            continue;
        }
        operators += usize::from(word == "if");
        word.clear();
        match byte {
            b'"' => {
                // A backslash escapes the next character, even a quote.
                while let Some((_, inner)) = bytes.next() {
                    match inner {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            b'/' if bytes.peek().is_some_and(|(_, next)| *next == b'/') => {
                bytes.by_ref().take_while(|(_, inner)| *inner != b'\n').for_each(drop);
            }
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'&' | b'|' | b'.' | b'+' | b'-' | b'*' | b'!' => operators += 1,
            b';' if open == 0 => operators = 0,
            _ => {}
        }
        let line = || text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        if open > MAX_OPEN {
            return Err(format!("line {}: more than {MAX_OPEN} brackets are open; write several policies", line()));
        }
        if operators > MAX_OPERATORS {
            let message = format!("more than {MAX_OPERATORS} operators in one policy; write several policies");
            return Err(format!("line {}: {message}", line()));
        }
    }
    Ok(())
}
