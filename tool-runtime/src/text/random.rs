//! Random ids, whose bytes come from the system in batches.

use std::cell::RefCell;

use uuid::{Builder, Uuid};

/// The number of ids for which one system call gets bytes. The call takes as long as twenty ids from the pool.
const AT_ONCE: usize = 32;

const ID_BYTES: usize = 16;

struct Pool {
    bytes: [u8; AT_ONCE * ID_BYTES],
    /// The number of bytes that no id has used yet.
    left: usize,
}

impl Pool {
    fn take(&mut self) -> Option<[u8; ID_BYTES]> {
        if self.left == 0 {
            getrandom::fill(&mut self.bytes).ok()?;
            self.left = self.bytes.len();
        }
        let (rest, id) = self.bytes.get(..self.left)?.split_last_chunk()?;
        self.left = rest.len();
        Some(*id)
    }
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; AT_ONCE * ID_BYTES], left: 0 }) };
}

/// Returns a random id for a run, a call, a lease or a budget reservation. Keys and other secrets come from the system
/// directly.
pub(crate) fn random_id() -> Uuid {
    // A thread that is ending no longer has a pool.
    let id = POOL.try_with(|pool| pool.borrow_mut().take()).ok().flatten();
    id.map_or_else(Uuid::new_v4, |bytes| Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_beyond_a_pool_and_between_threads() {
        let make = || (0..=3 * AT_ONCE).map(|_| random_id()).collect::<Vec<_>>();
        let mut ids = make();
        ids.extend(std::thread::spawn(make).join().unwrap());
        let count = ids.len();
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
        assert_eq!(ids.into_iter().collect::<HashSet<_>>().len(), count);
    }
}
