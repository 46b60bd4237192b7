//! Places where a tool may stand: below and above `#[cfg]`, in nested modules, in a function, out of a macro.

use tool_runtime::{ToolContext, ToolError, definition, tool};

/// Not built.
#[cfg(any())]
#[tool(name = "core__above", effect = read_only, redact = ["$"])]
pub fn above() -> Missing {}

/// Not built.
#[tool(name = "core__below", effect = read_only, redact = ["$"])]
#[cfg(any())]
pub fn below() -> Missing {}

/// Built.
#[tool(name = "core__built", effect = read_only, redact = ["$"])]
#[cfg(all())]
#[cfg_attr(all(), must_use)]
pub fn built() -> Result<u8, ToolError> {
    Ok(0)
}

pub mod outer {
    pub mod inner {
        use tool_runtime::{ToolError, tool};

        #[derive(serde::Serialize, schemars::JsonSchema)]
        pub(super) struct Private {
            left: i64,
        }

        /// Adds.
        #[tool(name = "core__add", effect = read_only, redact = ["left"])]
        pub(super) fn add() -> Result<Private, ToolError> {
            Ok(Private { left: 0 })
        }
    }

    pub fn names() -> String {
        tool_runtime::definition!(inner::add).unwrap().name.to_string()
    }
}

macro_rules! adds {
    ($name:ident, $tool:literal, $number:ty, $context:ty) => {
        /// Adds.
        #[tool(name = $tool, effect = read_only, redact = ["$"])]
        pub fn $name(
            context: $context,
            /// Left.
            #[arg(default = 7)]
            left: $number,
        ) -> Result<$number, ToolError> {
            let _ = context;
            Ok(left)
        }
    };
}

adds!(add_small, "core__add_small", u8, &ToolContext);
adds!(add_large, "core__add_large", i64, &ToolContext);

fn main() {
    /// In a function.
    #[tool(name = "core__local", effect = read_only, redact = ["$"])]
    fn local() -> Result<u8, ToolError> {
        built()
    }

    assert_eq!(outer::names(), "core__add");
    assert!(definition!(local).is_ok() && local().is_ok());
    assert!(definition!(add_small).is_ok() && definition!(crate::add_large).is_ok());
}
