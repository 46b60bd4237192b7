/// Someone's calendar.
trait Calendar: ::core::marker::Send + ::core::marker::Sync + 'static {
    fn next(&self) -> Entry;
}
#[doc(hidden)]
const _: () = {
    use facade::rt::__private1 as __rt;
    #[automatically_derived]
    impl __rt::Injected for dyn Calendar {
        type Effect = __rt::ExternalSideEffect;
        const NAME: &'static str = "Calendar";
    }
    #[automatically_derived]
    impl __rt::ConnectionKind for dyn Calendar {
        const KIND: &'static str = "calendar";
    }
};
