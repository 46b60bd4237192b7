//! [`Keyed`]: hashes of short texts from outside: the ids of calls, and the names of tools.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers with a secret of its own, so that an attacker cannot choose texts that collide. On a few bytes it
/// takes a third of the instructions of the standard one.
#[derive(Clone)]
pub(crate) struct Keyed {
    seed: u64,
    factor: u64,
}

impl Default for Keyed {
    fn default() -> Self {
        let random = RandomState::new();
        Self { seed: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folding;

    fn build_hasher(&self) -> Folding {
        Folding { state: self.seed, factor: self.factor }
    }
}

/// Multiplies each eight bytes with the secret, and folds the product into one word.
pub(crate) struct Folding {
    state: u64,
    factor: u64,
}

impl Folding {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        // Rotated and with the seed in it, so that no word leaves the state at 0.
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.factor).rotate_left(29);
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        self.add(rest.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_hash_differently_and_each_set_in_its_own_way() {
        let (one, other) = (Keyed::default(), Keyed::default());
        let ids: Vec<_> = (0..10_000).map(|at| format!("call_{at}")).chain((0..99).map(|at| "x".repeat(at))).collect();
        let hashes: std::collections::HashSet<_> = ids.iter().map(|id| one.hash_one(id.as_str())).collect();
        assert_eq!(hashes.len(), ids.len());
        // A table takes its slot from the low bits.
        let slots: std::collections::HashSet<_> = hashes.iter().map(|hash| hash % 16_384).collect();
        assert!(slots.len() > 6_000, "{}", slots.len());
        assert!(ids.iter().all(|id| one.hash_one(id.as_str()) != other.hash_one(id.as_str())));
    }
}
