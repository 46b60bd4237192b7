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
        __rt::recording! {
            fn recording(__adapter : ::std::sync::Arc < Self >, __recorder : &
            __rt::Recorder,) -> ::core::option::Option < ::std::sync::Arc < Self >> {
            struct __Recording(::std::sync::Arc < dyn Calendar >, __rt::Recorder);
            #[automatically_derived] impl Calendar for __Recording { fn next(& self) ->
            Entry { use __rt::NotDebug as _; self.1.note("next", || ::std::vec![]); < dyn
            Calendar as Calendar > ::next(& * self.0,) } }
            ::core::option::Option::Some(::std::sync::Arc::new(__Recording(__adapter,
            ::core::clone::Clone::clone(__recorder),))) }
        }
    }
    #[automatically_derived]
    impl __rt::ConnectionKind for dyn Calendar {
        const KIND: &'static str = "calendar";
    }
};
