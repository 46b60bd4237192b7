/// Someone's calendar.
trait Calendar: ::core::marker::Send + ::core::marker::Sync + 'static {
    fn next(&self) -> Entry;
}
#[doc(hidden)]
const _: () = {
    use facade::rt::__private as __rt;
    #[automatically_derived]
    impl __rt::Injected for dyn Calendar {
        type Effect = __rt::ExternalSideEffect;
        type Borrowing = __rt::ThroughConnection;
        const NAME: &'static str = "Calendar";
    }
    #[automatically_derived]
    impl __rt::ConnectionKind for dyn Calendar {
        const KIND: &'static str = "calendar";
    }
};
