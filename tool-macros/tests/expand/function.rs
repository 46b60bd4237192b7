/// Current date and time.
#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps
)]
pub async fn get_current_time(
    clock: &dyn Clock,
    timezone: String,
) -> Result<CurrentTime, TimeError> {
    clock.now_in(&timezone).await
}
#[doc(hidden)]
pub enum get_current_time {}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_argument::<String>();
        __rt::assert_default::<String>();
        __rt::assert_described::<
            Result<CurrentTime, TimeError>,
            { __rt::ComponentProbe::<__Arguments>::SAYS_SOMETHING },
        >();
    }
    fn __default_timezone() -> String {
        "UTC".to_string()
    }
    #[derive(__rt::serde::Deserialize, __rt::schemars::JsonSchema)]
    #[serde(crate = "__rt::serde", deny_unknown_fields)]
    #[schemars(crate = "__rt::schemars")]
    struct __Arguments {
        /// IANA time zone, for example `Europe/Oslo`.
        #[serde(default = "__default_timezone")]
        timezone: String,
    }
    #[automatically_derived]
    impl __rt::FnTool for __Arguments {
        type Return = Result<CurrentTime, TimeError>;
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
            >::send(async move {
                ::core::option::Option::Some(
                    get_current_time(__borrowed.get::<dyn Clock>(0usize)?, self.timezone)
                        .await,
                )
            })
        }
    }
    #[automatically_derived]
    impl __rt::Tool for __Arguments {
        type Effect = __rt::ReadOnly;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "core__get_current_time",
            description: "Current date and time.",
            redact: &["iso", "zone.name"],
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
    impl __rt::Named for get_current_time {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<__Arguments>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < __Arguments > ()
    }
};
