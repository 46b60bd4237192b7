//! A tool that was written without the macro, and declares less than it borrows.

use crate::component::declaration::Declaration;
use crate::component::{Named, Tool, Visitor};
use crate::{Call, Cap, ToolCatalog, ToolComponent, ToolError, capability, tool};

/// Changes orders.
#[capability(effect = state_change)]
trait Orders {
    fn book(&self);
}

/// Declares less than `Greedy` borrows.
#[tool(name = "test__modest", effect = read_only, redact = ["$"])]
struct Modest {}

impl ToolComponent for Modest {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greedy {}

impl ToolComponent for Greedy {
    type Capabilities = (Cap<dyn Orders>,);
    type Output = bool;

    async fn run(self, (orders,): Self::Capabilities, _: &Call<Self>) -> Result<bool, ToolError> {
        orders.book();
        Ok(true)
    }
}

impl Tool for Greedy {
    const DECLARATION: Declaration = <Modest as Tool>::DECLARATION;
    type Effect = <Modest as Tool>::Effect;
    type Answer = bool;
}

impl Named for Greedy {
    fn visit<V: Visitor>(visitor: V) -> V::Answer {
        visitor.visit::<Self>()
    }
}

#[test]
fn a_component_cannot_reach_further_than_it_declares() {
    let error = ToolCatalog::builder().tool::<Greedy>().build().unwrap_err();
    assert_eq!(error.code(), "effect");
    assert!(error.to_string().contains("declared `read_only`, but `Orders` reaches `state_change`"), "{error}");
}
