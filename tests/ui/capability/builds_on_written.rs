use tool_runtime::capability;

/// Writes.
#[capability(effect = external_side_effect)]
trait Writer {
    fn write(&self);
}

macro_rules! reader {
    ($name:ident: $($writer:tt)+) => {
        /// Tokens of a macro.
        #[capability(effect = read_only)]
        trait $name: $($writer)+ {
            fn read(&self);
        }
    };
}

macro_rules! named {
    ($name:ident, $writer:path) => {
        /// A path of a macro.
        #[capability(effect = read_only)]
        trait $name: $writer {
            fn read(&self);
        }
    };
}

reader!(Tokens: Writer + Send);
named!(Path, Writer);

use Writer as Debug;

/// Under the name of a trait that is harmless.
#[capability(effect = read_only)]
trait Renamed: Debug {
    fn read(&self);
}

fn main() {}
