#[allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps,
    reason = "a tool owns its arguments, has as many as its schema, and returns a `Result`"
)]
/// Adds.
pub fn add(clock: &dyn Clock, left: i64) -> Result<i64, Error> {
    Ok(left)
}
#[doc(hidden)]
pub enum add {}
#[doc(hidden)]
const _: () = {
    use crate::facade::rt::__private1 as __rt;
    fn __ask_the_compiler() {
        use __rt::Otherwise as _;
        __rt::assert_argument::<i64>();
        __rt::assert_described::<
            Result<i64, Error>,
            { __rt::ComponentProbe::<__Arguments>::SAYS_SOMETHING },
        >();
    }
    #[derive(
        crate::facade::rt::__private1::serde::Deserialize,
        crate::facade::rt::__private1::schemars::JsonSchema
    )]
    #[serde(crate = "crate::facade::rt::__private1::serde", deny_unknown_fields)]
    #[schemars(crate = "crate::facade::rt::__private1::schemars")]
    struct __Arguments {
        /// Left.
        left: i64,
    }
    #[automatically_derived]
    impl __rt::FnTool for __Arguments {
        type Lent = (__rt::Cap<dyn Clock>,);
        type Return = Result<i64, Error>;
        const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = &[
            __rt::requirement::<dyn Clock, __rt::ReadOnly>,
        ];
        async fn call(self, __lent: Self::Lent) -> Self::Return {
            add(&*__lent.0, self.left)
        }
    }
    #[automatically_derived]
    impl __rt::Tool for __Arguments {
        type Effect = __rt::ReadOnly;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "core__add",
            title: ::core::option::Option::None,
            description: "Adds.",
            redact: &["$"],
            model: &[],
            prepare: &[],
            tags: &[],
            timeout: ::core::option::Option::None,
            max_result_bytes: ::core::option::Option::None,
            execution: __rt::Execution::Server,
            idempotent: false,
            require_any: &[],
            evidence: &[],
            sensitive: &[],
            no_schema: ::core::option::Option::None,
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
        };
        fn input_schema(
            generator: &mut __rt::schemars::SchemaGenerator,
        ) -> ::core::option::Option<__rt::schemars::Schema> {
            ::core::option::Option::Some(
                <Self as __rt::schemars::JsonSchema>::json_schema(generator),
            )
        }
    }
    #[automatically_derived]
    impl __rt::Named for add {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<__Arguments>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < __Arguments > ()
    }
};
