//! Whether two schemas are the same, word for word, with references followed.

use std::collections::HashSet;

use serde_json::Value;

use crate::catalog::lock::shape::view::resolve;
use crate::catalog::lock::shape::{Comparison, MAX_DEPTH, MAX_PLACES, address};

impl<'a> Comparison<'a, '_> {
    pub(super) fn same(&mut self, old: &'a Value, new: &'a Value) -> bool {
        self.equal(old, new, 0, &mut HashSet::new())
    }

    /// `met` holds the pairs that references led to: if one of them is different, all of it is.
    fn equal(&mut self, old: &'a Value, new: &'a Value, depth: usize, met: &mut HashSet<(usize, usize)>) -> bool {
        self.places += 1;
        if depth > MAX_DEPTH {
            self.places = MAX_PLACES + 1;
        }
        if self.is_over() {
            return false;
        }
        match (old, new) {
            (Value::Object(one), Value::Object(other)) => {
                if one.len() != other.len() || !one.keys().all(|key| other.contains_key(key)) {
                    return false;
                }
                one.iter().all(|(key, old)| {
                    let Some(new) = other.get(key) else { return false };
                    if key != "$ref" {
                        return self.equal(old, new, depth + 1, met);
                    }
                    match (resolve(self.roots.0, old), resolve(self.roots.1, new)) {
                        (Some(old), Some(new)) => {
                            !met.insert((address(old), address(new))) || self.equal(old, new, depth + 1, met)
                        }
                        (None, None) => old == new,
                        _ => false,
                    }
                })
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(old, new)| self.equal(old, new, depth + 1, met))
            }
            _ => old == new,
        }
    }
}
