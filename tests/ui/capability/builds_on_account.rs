use tool_runtime::capability;

/// Somebody's mail.
#[capability(effect = read_only, kind = "mail")]
trait Mail {
    fn unread(&self) -> u32;
}

/// could be bound once for all calls.
#[capability(effect = read_only)]
trait Everybody: Mail {}

/// A connection to a calendar is none to a mailbox.
#[capability(effect = read_only, kind = "calendar")]
trait Calendar: Mail {}

/// The longer name of another kind.
#[capability(effect = read_only, kind = "mailbox")]
trait Mailbox: Mail {}

/// Belongs to the same account.
#[capability(effect = state_change, kind = "mail")]
trait Sender: Mail {}

/// Belongs to nobody.
#[capability(effect = read_only)]
trait Clock {}

/// An account adds to it.
#[capability(effect = read_only, kind = "mail")]
trait MailClock: Clock {}

fn main() {}
