//! One library after the other: from the text of the arguments to the text of the answer, by its fastest documented
//! way.

mod floor;
mod llm_tool;
pub mod ours;
mod rig;
pub mod rmcp;
mod tools_rs;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::tools::Shape;

/// A library with the three tools.
pub trait Peer {
    /// The name in tables.
    fn name(&self) -> &'static str;

    /// Runs one call.
    fn call(&self, shape: Shape, arguments: &str) -> String;
}

pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(floor::Floor),
        Box::new(rig::Rig::new()),
        Box::new(rmcp::Rmcp::new()),
        Box::new(tools_rs::ToolsRs::new()),
        Box::new(llm_tool::LlmTool::new()),
        Box::new(ours::Ours::new()),
    ]
}

/// None of the tools waits, so no executor is measured.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("these tools never wait"),
    }
}
