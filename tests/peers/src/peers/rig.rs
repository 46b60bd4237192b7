//! `rig-core`: an erased tool, found by its name.

use std::collections::HashMap;
use std::convert::Infallible;

use rig_core::tool::{ErasedTool, Tool, ToolContext};
use serde_json::Value;

use super::{Peer, ready};
use crate::tools::{Large, Medium, Row, Shape, Ticket, Tiny, add, file, sort};

macro_rules! tool {
    ($tool:ident, $name:literal, $arguments:ty, $output:ty, $run:path) => {
        struct $tool;

        impl Tool for $tool {
            const NAME: &'static str = $name;
            type Args = $arguments;
            type Output = $output;
            type Error = Infallible;

            fn description(&self) -> String {
                concat!("Runs ", $name, ".").to_owned()
            }

            fn parameters(&self) -> Value {
                schemars::schema_for!($arguments).into()
            }

            async fn call(&self, _: &mut ToolContext, arguments: $arguments) -> Result<$output, Infallible> {
                Ok($run(arguments))
            }
        }
    };
}

tool!(AddTool, "tiny", Tiny, i64, add);
tool!(FileTool, "medium", Medium, Ticket, file);
tool!(SortTool, "large", Large, Vec<Row>, sort);

pub struct Rig(HashMap<String, Box<dyn ErasedTool>>);

impl Rig {
    pub fn new() -> Self {
        let tools: [Box<dyn ErasedTool>; 3] = [Box::new(AddTool), Box::new(FileTool), Box::new(SortTool)];
        Self(tools.into_iter().map(|tool| (tool.name(), tool)).collect())
    }
}

impl Peer for Rig {
    fn name(&self) -> &'static str {
        "rig-core"
    }

    fn call(&self, shape: Shape, arguments: &str) -> String {
        let mut context = ToolContext::default();
        let result = ready(self.0[shape.name()].execute(arguments.to_owned(), &mut context));
        assert!(result.is_success());
        result.output().render()
    }
}
