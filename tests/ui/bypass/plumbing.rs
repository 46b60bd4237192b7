//! What expansions name has no public path.

use tool_runtime::capability::{AllowedIn, Bindings, Injected, Requirement, InjectedFrom, Within};
use tool_runtime::component::CapabilityList;
use tool_runtime::registration::{Registration, definition};
use tool_runtime::tool::{EffectLevel, Named, ReadOnly, Tool, Visitor};

fn main() {}
