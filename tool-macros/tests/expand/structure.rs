#[derive(::tool_runtime::__private::Attributes)]
/// Change fields of a task.
#[derive(Debug)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTask {
    /// Id of the task, as `tasks__list_tasks` returns it.
    #[arg(evidence = "tasks__list_tasks")]
    task_id: Uuid,
    /// New title; `null` removes it.
    #[schemars(length(min = 1, max = 120))]
    title: Option<Option<String>>,
    /// New state.
    #[arg(default = State::Open)]
    pub(crate) state: State,
}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_argument::<Uuid>();
        __rt::assert_argument::<Option<Option<String>>>();
        __rt::assert_argument::<State>();
        __rt::assert_default::<State>();
        __rt::assert_optional::<Option<Option<String>>>();
        __rt::assert_allowed::<
            __rt::StateChange,
            _,
        >(&__rt::ComponentProbe::<UpdateTask>::HOLDS);
        __rt::assert_described::<
            UpdateTask,
            { __rt::ComponentProbe::<UpdateTask>::SAYS_SOMETHING },
        >();
    }
    fn __default_state() -> State {
        State::Open
    }
    #[derive(__rt::serde::Deserialize, __rt::schemars::JsonSchema)]
    #[serde(crate = "__rt::serde", deny_unknown_fields)]
    #[schemars(crate = "__rt::schemars")]
    #[serde(rename_all = "camelCase")]
    struct __Arguments {
        /// Id of the task, as `tasks__list_tasks` returns it.
        task_id: Uuid,
        /// New title; `null` removes it.
        #[schemars(length(min = 1, max = 120))]
        #[serde(deserialize_with = "__rt::nullable")]
        #[serde(default, skip_serializing_if = "::core::option::Option::is_none")]
        title: Option<Option<String>>,
        /// New state.
        #[serde(default = "__default_state")]
        state: State,
    }
    #[automatically_derived]
    impl<'de> __rt::serde::Deserialize<'de> for UpdateTask {
        fn deserialize<D: __rt::serde::Deserializer<'de>>(
            deserializer: D,
        ) -> ::core::result::Result<Self, D::Error> {
            let __Arguments { task_id, title, state } = __rt::serde::Deserialize::deserialize(
                deserializer,
            )?;
            ::core::result::Result::Ok(Self { task_id, title, state })
        }
    }
    #[automatically_derived]
    impl __rt::schemars::JsonSchema for UpdateTask {
        fn schema_name() -> ::std::borrow::Cow<'static, str> {
            ::std::borrow::Cow::Borrowed("UpdateTask")
        }
        fn schema_id() -> ::std::borrow::Cow<'static, str> {
            ::std::borrow::Cow::Borrowed(
                ::core::concat!(::core::module_path!(), "::", "UpdateTask"),
            )
        }
        fn json_schema(
            generator: &mut __rt::schemars::SchemaGenerator,
        ) -> __rt::schemars::Schema {
            <__Arguments as __rt::schemars::JsonSchema>::json_schema(generator)
        }
    }
    #[automatically_derived]
    impl __rt::Tool for UpdateTask {
        type Effect = __rt::StateChange;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "tasks__update_task",
            description: "Change fields of a task.",
            redact: &["task_id", "state"],
            input: ::core::option::Option::Some(
                <__Arguments as __rt::schemars::JsonSchema>::json_schema,
            ),
            require_any: &["state", "title"],
            evidence: &[("taskId", "tasks__list_tasks")],
            constraints: &[("title", "length")],
            location: __rt::location(
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
                ::core::column!(),
            ),
            ..__rt::Declaration::SILENT
        };
        fn validate(&self) -> ::core::result::Result<(), __rt::Violation> {
            __rt::validated(UpdateTask::is_sane(self))
        }
    }
    impl UpdateTask {
        /// Returns the definition of this tool, made without a registry.
        ///
        /// # Errors
        /// The name or a schema of the tool is not allowed.
        pub fn definition() -> __rt::Definition {
            __rt::definition::<Self>()
        }
    }
    #[automatically_derived]
    impl __rt::Named for UpdateTask {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<UpdateTask>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < UpdateTask > ()
    }
};
