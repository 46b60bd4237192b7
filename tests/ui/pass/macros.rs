//! A library that exports a macro which makes tools, for authors who do not name the runtime themselves.

mod library {
    pub use tool_runtime as rt;

    // The attributes fit on one line each: rustfmt indents longer ones further each time.
    #[macro_export]
    macro_rules! counters {
        ($function:ident, $structure:ident, $name:literal, $other:literal) => {
            /// Counts.
            #[$crate::library::rt::tool(name = $name, effect = read_only, redact = ["$"], crate = $crate::library::rt)]
            fn $function(
                /// From where.
                #[arg(default = 1)]
                from: i64,
                /// A note; `null` removes it.
                note: Option<Option<String>>,
            ) -> Result<i64, $crate::library::rt::ToolError> {
                Ok(from + note.map_or(0, |_| 1))
            }

            /// Counts further.
            #[$crate::library::rt::tool(name = $other, effect = read_only, redact = ["$"], crate = $crate::library::rt)]
            struct $structure {
                /// From where.
                #[arg(default = 1)]
                from: i64,
                /// A note; `null` removes it.
                note: Option<Option<String>>,
            }

            impl $crate::library::rt::ToolComponent for $structure {
                type Capabilities = ();
                type Output = i64;

                async fn run(
                    self,
                    (): (),
                    _: &$crate::library::rt::Call<Self>,
                ) -> Result<i64, $crate::library::rt::ToolError> {
                    Ok(self.from + self.note.map_or(0, |_| 1))
                }
            }
        };
    }
}

mod author {
    // Shadows the default path: whatever names it does not compile.
    #[allow(dead_code)]
    mod tool_runtime {}

    crate::counters!(count, CountOn, "core__count", "core__count_on");

    pub fn names() -> [String; 2] {
        [crate::library::rt::definition!(count), CountOn::definition()].map(|spec| spec.unwrap().name.to_string())
    }
}

fn main() {
    assert_eq!(author::names(), ["core__count", "core__count_on"]);
}
