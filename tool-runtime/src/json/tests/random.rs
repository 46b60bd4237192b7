//! Generated values: written and read back, compared with another parser, and broken at random.

use super::{WIDE, read};
use crate::json::{Tree, canonical, parse_value};

/// A small random number generator with a fixed seed, so that every run uses the same values.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 14] =
            ["a", "key", " ", "\"", "\\", "\n", "\u{0}", "\u{1f}", "é", "😀", "/", "\u{2028}", "longer text", "~"];
        (0..self.below(6)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    fn tree(&mut self, depth: usize) -> Tree<'static> {
        match self.below(if depth == 0 { 7 } else { 10 }) {
            0 => Tree::Null,
            1 => Tree::Bool(self.below(2) == 0),
            2 => Tree::Int(i64::from_ne_bytes(self.next().to_ne_bytes()) >> self.below(64)),
            3 => Tree::UInt(u64::MAX - (self.next() >> 8)),
            4 => match f64::from_bits(self.next()) {
                number if number.is_finite() && number.fract() != 0.0 => Tree::Float(number),
                _ => Tree::Float(0.5),
            },
            5 | 6 => Tree::String(self.text().into()),
            7 | 8 => Tree::Array((0..self.below(5)).map(|_| self.tree(depth - 1)).collect()),
            _ => {
                let mut members: Vec<_> = (0..self.below(6))
                    .map(|at| (format!("{}{at}", self.text()).into(), self.tree(depth - 1)))
                    .collect();
                members.dedup_by(|one, two| one.0 == two.0);
                Tree::Object(members)
            }
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut random = Random(7);
    for _ in 0..5_000 {
        let tree = random.tree(4);
        let text = serde_json::to_string(&tree).unwrap();
        assert!(read(&text) == tree, "{text}");
        assert!(read(&serde_json::to_string_pretty(&tree).unwrap()) == tree, "{text}");
        assert!(read(&canonical::to_text(&tree)) == tree, "{text}");
        assert!(Tree::from_value(&tree.to_value()) == tree, "{text}");
        assert!(tree.clone().into_owned() == tree);
    }
}

#[test]
fn what_another_parser_refuses_is_refused() {
    let mut random = Random(11);
    for _ in 0..20_000 {
        let mut bytes = serde_json::to_vec(&random.tree(3)).unwrap();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b"{}[],:\"\\0e-. nt"[random.below(15)]),
                _ => bytes[at] = b"{}[],:\"\\9E+.\ntu"[random.below(15)],
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match parse_value(&text, &WIDE) {
            Ok(_) => assert!(theirs.is_ok(), "{text}"),
            Err(error) => {
                use crate::json::ParseErrorKind::{DuplicateKey, IntegerRange, NotFinite};
                assert!(
                    theirs.is_err() || matches!(error.kind, DuplicateKey | IntegerRange | NotFinite),
                    "{text}: {error}"
                );
            }
        }
    }
}
