use tool_runtime::capability;

/// Changes orders.
#[capability(effect = state_change)]
trait Orders {
    /// Makes one.
    fn book(&self, what: &str);
}

/// Says that it only reads, and brings all of `Orders` along.
#[capability(effect = read_only)]
trait Sneaky: Orders + std::fmt::Debug {
    /// How many there are.
    fn count(&self) -> usize;
}

/// The same, said elsewhere.
#[capability(effect = read_only)]
trait SneakyToo
where
    Self: Orders,
{
    /// How many there are.
    fn count(&self) -> usize;
}

/// Reaches as far as it says.
#[capability(effect = external_side_effect)]
trait Honest: Orders {
    /// Tells the world.
    fn announce(&self);
}

fn main() {}
