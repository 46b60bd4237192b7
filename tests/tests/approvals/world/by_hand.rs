//! The precondition of a tool that implements `ToolComponent` by hand.

use tool_runtime::{Call, Cap, ToolComponent};

use super::*;

/// Pays, with a precondition that is ready at once.
#[tool(name = "world__ready", effect = state_change, redact = ["$"])]
struct Ready {
    /// Which account.
    account: String,
}

impl ToolComponent for Ready {
    type Capabilities = (Cap<dyn World>, Cap<dyn Accounts>);
    type Output = String;

    async fn run(self, (world, _): Self::Capabilities, _: &Call<Self>) -> Result<String, ToolError> {
        world.happen();
        Ok(self.account)
    }

    fn precondition(
        self,
        capabilities: Capabilities,
    ) -> impl Future<Output = Result<Precondition, ToolError>> + Send + 'static {
        // It is never called without its capabilities.
        let accounts = capabilities.read::<dyn Accounts>().expect("they are bound");
        std::future::ready(Ok(Precondition::of("balance", accounts.known())))
    }
}

/// The type of its future says nothing about a precondition.
#[tokio::test]
async fn a_future_that_is_ready_at_once_is_compared() {
    let rules = "require_approval_for_tools = ['world__ready']";
    let rig = Rig::new();
    let run = || rig.process(rules).run(of("run-1"));
    let question = asked(&run().exec(call("world__ready")).await);
    assert_eq!(rig.waiting().await.summary.as_deref(), Some("This call depends on: “balance” is “120”."));
    rig.accounts.set(90);
    of_another_world(&approve(&run(), &question).await);
    let result = approve(&run(), &rig.waiting().await.question()).await;
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1));
}
