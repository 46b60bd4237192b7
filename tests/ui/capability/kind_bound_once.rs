use std::sync::Arc;

use tool_runtime::{Capabilities, capability};

/// Somebody's mail.
#[capability(effect = read_only, kind = "mail")]
trait Mail {
    fn unread(&self) -> u32;
}

struct Mailbox;

impl Mail for Mailbox {
    fn unread(&self) -> u32 {
        3
    }
}

fn main() {
    let _ = Capabilities::new().with::<dyn Mail>(Arc::new(Mailbox));
}
