use tool_runtime::capability;

/// Writes.
#[capability(effect = external_side_effect)]
trait Writer {
    fn write(&self);
}

macro_rules! me {
    () => {
        Self
    };
}

/// A macro that writes `Self`.
#[capability(effect = read_only)]
trait ByMacro
where
    me!(): Writer,
{
    fn read(&self);
}

/// A separate trait object.
#[capability(effect = read_only)]
trait ByObject
where
    dyn ByObject: Send,
{
    fn read(&self);
}

/// A reference.
#[capability(effect = read_only)]
trait ByReference
where
    &'static Self: Writer,
{
    fn read(&self);
}

/// A type that belongs to another one.
#[capability(effect = read_only)]
trait ByProjection
where
    <str as ToOwned>::Owned: Send,
{
    fn read(&self);
}

/// Lifetimes in front of the type.
#[capability(effect = read_only)]
trait ByLifetimes
where
    for<'a> Self: Writer,
    for<'a> &'a Self: Writer,
{
    fn read(&self);
}

/// A type around it.
#[capability(effect = read_only)]
trait ByTuple
where
    (Self,): Sized,
{
    fn read(&self);
}

fn main() {}
