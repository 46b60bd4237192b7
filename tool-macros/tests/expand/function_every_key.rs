/// Sends a message.
///
/// Ask before you send.
#[must_use]
#[allow(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::unnecessary_wraps
)]
pub(crate) fn send(
    #[allow(unused_variables)]
    to_address: String,
    ctx: &ToolContext,
    #[allow(unused_variables)]
    subject: Option<String>,
    #[allow(unused_variables)]
    mail: &Connection<dyn Mail>,
    #[allow(unused_variables)]
    r#type: Option<Option<Kind>>,
    password: String,
    #[allow(unused_variables)]
    #[allow(unused_variables)]
    mut copies: Vec<String>,
) -> Answer {
    mail.send(ctx, to_address, subject, r#type, password, copies)
}
#[doc(hidden)]
pub(crate) enum send {}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_argument::<String>();
        __rt::assert_argument::<Option<String>>();
        __rt::assert_argument::<Option<Option<Kind>>>();
        __rt::assert_default::<String>();
        __rt::assert_argument::<Vec<String>>();
        __rt::assert_default::<Vec<String>>();
        __rt::assert_optional::<Option<String>>();
        __rt::assert_optional::<Option<Option<Kind>>>();
        __rt::assert_described::<
            Sent<Receipt, Cause>,
            { __rt::AnswerProbe::<Sent<Receipt, Cause>>::SAYS_SOMETHING },
        >();
        __rt::assert_described::<
            Answer,
            { __rt::ComponentProbe::<__Arguments>::SAYS_SOMETHING },
        >();
    }
    fn __default_password() -> String {
        String::new()
    }
    #[derive(__rt::serde::Deserialize, __rt::schemars::JsonSchema)]
    #[serde(crate = "__rt::serde", deny_unknown_fields)]
    #[schemars(crate = "__rt::schemars")]
    #[serde(rename_all = "camelCase")]
    struct __Arguments {
        /// Who gets it.
        to_address: String,
        /// Subject.
        #[schemars(length(max = 120))]
        subject: Option<String>,
        /// Kind.
        #[serde(rename = "kind")]
        #[serde(deserialize_with = "__rt::nullable")]
        #[serde(default, skip_serializing_if = "::core::option::Option::is_none")]
        r#type: Option<Option<Kind>>,
        /// Password of the account.
        #[serde(default = "__default_password")]
        password: String,
        /// Copies.
        #[serde(default)]
        copies: Vec<String>,
    }
    #[automatically_derived]
    impl __rt::FnTool for __Arguments {
        type Return = Answer;
        const REQUIREMENTS: &'static [fn() -> __rt::Requirement] = {
            use __rt::NotInjected as _;
            &[
                __rt::BorrowProbe::<
                    ToolContext,
                >::of_type::<ToolContext, __rt::ExternalSideEffect>,
                __rt::BorrowProbe::<
                    Connection<dyn Mail>,
                >::of_type::<Connection<dyn Mail>, __rt::ExternalSideEffect>,
            ]
        };
        fn call(
            self,
            __borrowed: __rt::Borrowed<Self>,
        ) -> impl ::core::future::Future<
            Output = ::core::option::Option<Self::Return>,
        > + ::core::marker::Send {
            use __rt::Otherwise as _;
            __rt::FutureProbe::<
                __rt::Borrows<ToolContext, __rt::Borrows<Connection<dyn Mail>, ()>>,
            >::send(
                __rt::blocking(move || ::core::option::Option::Some(
                    send(
                        self.to_address,
                        __borrowed.get::<ToolContext>(0usize)?,
                        self.subject,
                        __borrowed.get::<Connection<dyn Mail>>(1usize)?,
                        self.r#type,
                        self.password,
                        self.copies,
                    ),
                )),
            )
        }
        const STATES: bool = true;
        fn precondition(
            self,
            __capabilities: __rt::Capabilities,
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<__rt::Precondition, __rt::ToolError>,
        > + ::core::marker::Send + 'static {
            async move {
                __rt::returned(
                    checks::unsent(
                            &self.to_address,
                            self.copies,
                            __capabilities.read::<Connection<dyn Mail>>()?,
                        )
                        .await,
                )
            }
        }
    }
    #[automatically_derived]
    impl __rt::Tool for __Arguments {
        type Effect = __rt::ExternalSideEffect;
        type Answer = Sent<Receipt, Cause>;
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "mail__send",
            description: "Sends a message.\n\nAsk before you send.",
            redact: &["id"],
            input: ::core::option::Option::Some(
                <__Arguments as __rt::schemars::JsonSchema>::json_schema,
            ),
            title: ::core::option::Option::Some("Send mail"),
            summary: &[
                "Sends {{mail}} about \"{subject}\" to {toAddress}",
                "Sends a {kind.name} to {toAddress}",
            ],
            model: &["status"],
            prepare: &["draft"],
            tags: &["mail", "slow"],
            also: &["letter", "post"],
            timeout: ::core::option::Option::Some(
                ::core::time::Duration::from_millis(120000u64),
            ),
            max_result_bytes: ::core::option::Option::Some(4_096),
            execution: __rt::Execution::Client,
            idempotent: true,
            require_any: &["subject", "kind"],
            evidence: &[("toAddress", "contacts__list")],
            sensitive: &["password"],
            constraints: &[("subject", "length")],
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
            ..__rt::Declaration::SILENT
        };
        fn validate(&self) -> ::core::result::Result<(), __rt::Violation> {
            __rt::validated(
                checks::addressed(
                    &self.to_address,
                    &self.subject,
                    &self.r#type,
                    &self.password,
                    &self.copies,
                ),
            )
        }
    }
    #[automatically_derived]
    impl __rt::Named for send {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<__Arguments>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < __Arguments > ()
    }
};
