use tool_runtime::capability;

/// Writes.
#[capability(effect = external_side_effect)]
trait Writer {
    fn write(&self);
}

/// A type that belongs to it writes.
#[capability(effect = read_only)]
trait Reader {
    type Handle: Writer;

    fn handle(&self) -> Self::Handle;
}

fn main() {}
