use tool_runtime::capability;

/// Writes.
#[capability(effect = external_side_effect)]
trait Writer {
    fn write(&self);
}

/// In parentheses.
#[capability(effect = read_only)]
trait Parenthesised
where
    (Self): Writer,
{
    fn read(&self);
}

/// In more of them, behind a bound on nothing.
#[capability(effect = read_only)]
trait Twice
where
    Self:,
    ((Self)): Send + (Writer),
{
    fn read(&self);
}

macro_rules! reader {
    ($name:ident, $me:ty, $writer:path) => {
        /// In the invisible group of a fragment.
        #[capability(effect = read_only)]
        trait $name
        where
            $me: $writer,
        {
            fn read(&self);
        }
    };
}

reader!(Grouped, Self, Writer);
reader!(GroupedTwice, (Self), Writer);

/// Reaches as far as it says.
#[capability(effect = external_side_effect)]
trait Honest: (Writer)
where
    (Self): Writer + 'static,
{
    fn read(&self);
}

fn main() {}
