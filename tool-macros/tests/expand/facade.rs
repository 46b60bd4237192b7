/// Adds.
#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps
)]
pub fn add(clock: &dyn Clock, left: i64) -> Result<i64, Error> {
    Ok(left)
}
#[doc(hidden)]
pub enum add {}
#[doc(hidden)]
const _: () = {
    use crate::facade::rt::__private as __rt;
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_argument::<i64>();
        __rt::assert_described::<
            Result<i64, Error>,
            { __rt::ComponentProbe::<__Arguments>::SAYS_SOMETHING },
        >();
    }
    #[derive(__rt::serde::Deserialize, __rt::schemars::JsonSchema)]
    #[serde(crate = "__rt::serde", deny_unknown_fields)]
    #[schemars(crate = "__rt::schemars")]
    struct __Arguments {
        /// Left.
        left: i64,
    }
    #[automatically_derived]
    impl __rt::FnTool for __Arguments {
        type Return = Result<i64, Error>;
        const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = {
            use __rt::NotInjected as _;
            &[__rt::BorrowProbe::<dyn Clock>::of_trait::<dyn Clock, __rt::ReadOnly>]
        };
        fn call(
            self,
            __borrowed: __rt::Borrowed<Self>,
        ) -> impl ::core::future::Future<
            Output = ::core::option::Option<Self::Return>,
        > + ::core::marker::Send {
            use __rt::Otherwise as _;
            __rt::FutureProbe::<
                __rt::Borrows<dyn Clock, ()>,
            >::send(
                __rt::call(move || ::core::option::Option::Some(
                    add(__borrowed.get::<dyn Clock>(0usize)?, self.left),
                )),
            )
        }
    }
    #[automatically_derived]
    impl __rt::Tool for __Arguments {
        type Effect = __rt::ReadOnly;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "core__add",
            description: "Adds.",
            redact: &["$"],
            input: ::core::option::Option::Some(
                <__Arguments as __rt::schemars::JsonSchema>::json_schema,
            ),
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
    impl __rt::Named for add {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<__Arguments>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < __Arguments > ()
    }
};
