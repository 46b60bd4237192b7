/// How far away from the caller a clock is read: nowhere.
#[async_trait]
pub trait Clock: Debug + ::core::marker::Send + ::core::marker::Sync + 'static {
    async fn now(&self) -> Timestamp;
}
#[doc(hidden)]
const _: () = {
    use ::tool_runtime::__private as __rt;
    #[automatically_derived]
    impl __rt::Injected for dyn Clock {
        type Effect = __rt::ReadOnly;
        type Borrowing = __rt::Directly;
        const NAME: &'static str = "Clock";
    }
    fn __assertions() {
        use __rt::Otherwise as _;
        __rt::assert_known::<
            dyn Debug + 'static,
            { __rt::ReachProbe::<dyn Debug + 'static>::KNOWN },
        >();
        __rt::assert_reach::<
            dyn Debug + 'static,
            {
                __rt::ReachProbe::<dyn Debug + 'static>::REACH
                    .is_within(<__rt::ReadOnly as __rt::EffectLevel>::EFFECT)
            },
        >();
        __rt::assert_account::<
            dyn Debug + 'static,
            {
                __rt::ReachProbe::<dyn Debug + 'static>::ACCOUNTS
                    .are_of(::core::option::Option::None)
            },
        >();
    }
};
