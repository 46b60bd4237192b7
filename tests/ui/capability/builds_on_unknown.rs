use tool_runtime::capability;

/// Changes tasks.
#[capability(effect = state_change)]
trait Writer {
    fn write(&self);
}

/// Not a capability, but a way to one.
trait Middle: Writer {}

/// A tool that borrows it could upcast to `Middle`, and from there to `Writer`.
#[capability(effect = read_only)]
trait Reader: Middle {
    fn read(&self) -> u8;
}

/// A tool that borrows it could call `write` on what it dereferences to.
#[capability(effect = read_only)]
trait Handle: std::ops::Deref<Target = dyn Writer> {}

/// A tool that borrows it could cast it down to the adapter, which may be a `Writer` as well.
#[capability(effect = read_only)]
trait Cast: std::any::Any {}

/// The same, by `<dyn Error>::downcast_ref`.
#[capability(effect = read_only)]
trait Failing: std::error::Error {}

/// All of these are harmless.
#[capability(effect = read_only)]
trait Plain: std::fmt::Debug + std::fmt::Display + Send + Sync + Unpin {}

fn main() {}
