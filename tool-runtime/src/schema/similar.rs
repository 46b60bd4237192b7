//! Names that look like another: the property of a schema that a wrong one was probably meant to be.

/// Longer names are not compared.
const LONGEST: usize = 64;

/// Whether one name is probably a slip of the other: case and separators aside, a third of it may differ.
pub(super) fn is_similar(one: &str, two: &str) -> bool {
    if one.len() > LONGEST || two.len() > LONGEST {
        return false;
    }
    let (one, two) = (plain(one), plain(two));
    let (short, long) = if one.len() < two.len() { (&one, &two) } else { (&two, &one) };
    if short.is_empty() {
        return false;
    }
    let contained = short.len() >= 3 && (long.starts_with(short.as_slice()) || long.ends_with(short.as_slice()));
    contained || distance(&one, &two) <= (long.len() / 3).max(1)
}

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|character| !matches!(character, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours.
fn distance(one: &[char], two: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, this) in one.iter().enumerate() {
        let mut next = vec![at + 1];
        for (place, that) in two.iter().enumerate() {
            let at_place = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX - 1);
            let replaced = at_place(&row, place) + usize::from(this != that);
            let mut best = replaced.min(at_place(&row, place + 1) + 1).min(at_place(&next, place) + 1);
            let swapped = at > 0 && place > 0 && one.get(at - 1) == Some(that) && two.get(place - 1) == Some(this);
            if swapped {
                best = best.min(at_place(&before, place - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::is_similar;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        for (one, two, expected) in [
            ("city", "ctiy", true),
            ("city", "City", true),
            ("due_date", "dueDate", true),
            ("due_date", "due", true),
            ("timezone", "time_zone", true),
            ("timezone", "zone", true),
            ("location", "locaton", true),
            ("a", "b", true),
            ("id", "unit", false),
            ("city", "unit", false),
            ("state", "priority", false),
            ("title", "", false),
            ("ti", "titles", false),
        ] {
            assert_eq!(is_similar(one, two), expected, "{one} {two}");
            assert_eq!(is_similar(two, one), expected, "{two} {one}");
        }
        assert!(!is_similar(&"a".repeat(100_000), &"a".repeat(100_000)));
    }
}
