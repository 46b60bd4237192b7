/// Passes on what it is given.
#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps
)]
fn raw(anything: Raw) -> Result<String, ToolError> {
    Ok(anything.0)
}
#[doc(hidden)]
enum raw {}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_parsed_argument::<Raw>();
        __rt::assert_described::<
            Result<String, ToolError>,
            { __rt::ComponentProbe::<__Arguments>::SAYS_SOMETHING },
        >();
    }
    #[derive(__rt::serde::Deserialize)]
    #[serde(crate = "__rt::serde", deny_unknown_fields)]
    struct __Arguments {
        /// Whatever there is.
        anything: Raw,
    }
    #[automatically_derived]
    impl __rt::FnTool for __Arguments {
        type Return = Result<String, ToolError>;
        fn call(
            self,
            __borrowed: __rt::Borrowed<Self>,
        ) -> impl ::core::future::Future<
            Output = ::core::option::Option<Self::Return>,
        > + ::core::marker::Send {
            use __rt::Otherwise as _;
            __rt::FutureProbe::<
                (),
            >::send(__rt::call(move || ::core::option::Option::Some(raw(self.anything))))
        }
    }
    #[automatically_derived]
    impl __rt::Tool for __Arguments {
        type Effect = __rt::ReadOnly;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "core__raw",
            description: "Passes on what it is given.",
            redact: &["$"],
            no_schema: ::core::option::Option::Some(__rt::NoSchemaMode::RejectEffects),
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
            ..__rt::Declaration::SILENT
        };
    }
    #[automatically_derived]
    impl __rt::Named for raw {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<__Arguments>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < __Arguments > ()
    }
};
