//! The size of a script's variable. The language limits the values that one expression creates, but neither the values
//! that are put into an array or a map by index nor the names of members.

use rhai::Dynamic;

/// The maximum size of a variable, in bytes.
const BYTES: usize = 1 << 20;
/// The maximum length of a member's name, in bytes. Each copy of a map repeats the names.
const NAME: usize = 256;
/// The maximum nesting of a variable, because comparing, printing and dropping it recurses.
const DEPTH: usize = 64;
/// The size of a value without its content, a generous estimate. It limits a variable to 8,192 values, so that visiting
/// all of them is cheap.
const VALUE: usize = 128;
/// The size of an object map without its members. A new map already has space for several members.
const MAP: usize = 512;

/// The bytes of a string that can be read in the time of one operation.
const TEXT_OF_AN_OPERATION: usize = 512;
/// The bytes of values that can be copied or compared in the time of one operation.
const VALUES_OF_AN_OPERATION: usize = 64 * VALUE;

/// Returns the number of additional operations for the use of a variable, because a function may read all of its
/// argument. `None` if the variable exceeds its limits.
pub(super) fn weight(value: &Dynamic) -> Option<u64> {
    let used = BYTES - room_after(value, BYTES, DEPTH)?;
    let unit = if value.is_string() { TEXT_OF_AN_OPERATION } else { VALUES_OF_AN_OPERATION };
    Some((used / unit) as u64)
}

/// Returns the space that remains after a value; `None` if it exceeds the space or the depth.
fn room_after(value: &Dynamic, room: usize, depth: usize) -> Option<usize> {
    let (room, depth) = (room.checked_sub(VALUE)?, depth.checked_sub(1)?);
    // Most values are numbers and flags, which have no content to visit.
    if !(value.is_string() || value.is_array() || value.is_map() || value.is_blob()) {
        return Some(room);
    }
    if let Ok(text) = value.as_immutable_string_ref() {
        return room.checked_sub(text.len());
    }
    if let Ok(bytes) = value.as_blob_ref() {
        return room.checked_sub(bytes.len());
    }
    if let Ok(items) = value.as_array_ref() {
        return items.iter().try_fold(room, |room, item| room_after(item, room, depth));
    }
    if let Ok(members) = value.as_map_ref() {
        return members.iter().try_fold(room.checked_sub(MAP)?, |room, (name, member)| {
            let room = room.checked_sub(name.len()).filter(|_| name.len() <= NAME)?;
            room_after(member, room, depth)
        });
    }
    Some(room)
}

#[cfg(test)]
mod tests {
    use rhai::{Array, Map};

    use super::*;

    fn map(name: &str, value: impl Into<Dynamic>) -> Dynamic {
        Dynamic::from_map(Map::from([(name.into(), value.into())]))
    }

    #[test]
    fn all_that_is_in_a_variable_counts() {
        let text = || Dynamic::from("x".repeat(BYTES / 2));
        let check = |what, value: Dynamic, is_small| assert_eq!(weight(&value).is_some(), is_small, "{what}");
        check("a number", 7.into(), true);
        check("a text", text(), true);
        check("two texts", vec![text(), text()].into(), false);
        check("a text in a map", map("a", vec![map("b", text()), map("c", text())]), false);
        check("bytes", Dynamic::from_blob(vec![0; BYTES]), false);
        check("numbers", vec![Dynamic::UNIT; BYTES / VALUE].into(), false);
        check("maps", vec![map("a", 1); 1_000].into(), true);
        check("many maps", vec![map("a", 1); BYTES / MAP].into(), false);
        check("a name", map(&"n".repeat(NAME), 1), true);
        check("a long name", map(&"n".repeat(NAME + 1), 1), false);
        let nested = |depth| (1..depth).fold(Dynamic::UNIT, |inner, _| Array::from([inner]).into());
        check("nested", nested(DEPTH), true);
        check("nested too deeply", nested(DEPTH + 1), false);
    }
}
