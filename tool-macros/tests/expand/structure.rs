#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private1 as __rt;
    fn __ask_the_compiler() {
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
};
#[derive(
    ::tool_runtime::__private1::serde::Deserialize,
    ::tool_runtime::__private1::schemars::JsonSchema
)]
#[serde(crate = "::tool_runtime::__private1::serde", deny_unknown_fields)]
#[schemars(crate = "::tool_runtime::__private1::schemars")]
#[serde(rename_all = "camelCase")]
/// Change fields of a task.
#[derive(Debug)]
pub struct UpdateTask {
    /// Id of the task, as `tasks__list_tasks` returns it.
    task_id: Uuid,
    /// New title; `null` removes it.
    #[schemars(length(min = 1, max = 120))]
    #[serde(deserialize_with = "::tool_runtime::__private1::nullable")]
    #[serde(default, skip_serializing_if = "::core::option::Option::is_none")]
    title: Option<Option<String>>,
    /// New state.
    #[serde(default = "UpdateTask::__default_state")]
    pub(crate) state: State,
}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private1 as __rt;
    #[automatically_derived]
    impl __rt::Tool for UpdateTask {
        type Effect = __rt::StateChange;
        type Answer = ();
        const DECLARATION: __rt::Declaration = __rt::Declaration {
            name: "tasks__update_task",
            title: ::core::option::Option::None,
            description: "Change fields of a task.",
            redact: &["task_id", "state"],
            model: &[],
            prepare: &[],
            tags: &[],
            timeout: ::core::option::Option::None,
            max_result_bytes: ::core::option::Option::None,
            execution: __rt::Execution::Server,
            idempotent: false,
            require_any: &["state", "title"],
            evidence: &[("taskId", "tasks__list_tasks")],
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
        fn validate(&self) -> ::core::result::Result<(), __rt::Violation> {
            UpdateTask::is_sane(self)
        }
    }
    impl UpdateTask {
        /// The authoritative definition of this tool, made without a registry.
        pub fn definition() -> __rt::Definition {
            __rt::definition::<Self>()
        }
        #[doc(hidden)]
        fn __default_state() -> State {
            State::Open
        }
    }
    #[automatically_derived]
    impl __rt::Named for UpdateTask {
        fn visit<V: __rt::Visitor>(visitor: V) -> V::Answer {
            visitor.visit::<Self>()
        }
    }
    __rt::inventory::submit! {
        __rt::Registration::of:: < UpdateTask > ()
    }
};
