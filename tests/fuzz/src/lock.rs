//! Locks: two texts, separated by a byte that does not occur in JSON.

use tool_runtime::catalog::ToolLock;

pub fn locks_are_compared(text: &str) {
    let (old, new) = text.split_once('\0').unwrap_or((text, text));
    let (Ok(old), Ok(new)) = (ToolLock::parse(old), ToolLock::parse(new)) else { return };
    for lock in [&old, &new] {
        let text = lock.to_text();
        let again = ToolLock::parse(&text).expect("what was written is read");
        assert_eq!(again.to_text(), text, "a lock is written in one way");
        assert!(again.compare(&again).is_current(), "a lock is that of itself");
    }
    let report = old.compare(&new);
    let rank = |verdict: &str| ["unchanged", "patch", "minor", "major"].iter().position(|one| *one == verdict);
    for (_, changes) in report.tools() {
        assert!(!changes.is_empty() && changes.len() <= 100, "changes are listed, and bounded");
        let verdicts: Vec<_> = changes.iter().map(|change| rank(change.verdict())).collect();
        assert!(verdicts.is_sorted_by(|one, next| one >= next), "the gravest is the first");
        assert!(verdicts[0] <= rank(report.verdict()), "the verdict is the gravest");
        assert!(changes.iter().all(|change| change.message.len() < 4096), "messages are bounded");
    }
    assert_eq!(report.is_current(), report.to_string().is_empty(), "what changed is said");
}
