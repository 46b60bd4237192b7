//! Cases of the spending; time is the paused clock of tokio.

use super::*;
use crate::policy::exceeded::Amount;

fn spending(budget: &str) -> Spending {
    shared_by(1, budget)
}

fn shared_by(parallel: usize, budget: &str) -> Spending {
    Spending::new(vec![(Holder::Run, toml::from_str(budget).unwrap())], parallel)
}

fn reserve(spending: &Spending, wanted: Spend) -> Reservation {
    spending.reserve(wanted).unwrap().unwrap()
}

fn refused(amount: Amount) -> BudgetExceeded {
    BudgetExceeded::new(Holder::Run, amount, None)
}

fn spend(calls: u64, tokens: u64, cost: f64) -> Spend {
    Spend { calls, tokens, cost, ..Spend::default() }
}

#[test]
fn what_is_asked_for_is_refused_once_it_passes_a_limit() {
    #[track_caller]
    fn check(budget: &str, wanted: &[(Spend, Option<BudgetExceeded>)]) {
        let spending = spending(budget);
        let mut held = Vec::new();
        for (at, (wanted, refused)) in wanted.iter().enumerate() {
            let got = spending.reserve(*wanted);
            assert_eq!(got.as_ref().err().copied(), *refused, "request {at}");
            held.extend(got);
        }
    }
    let call = Spend::call(None, 0);
    check("", &[(call, None), (spend(1, u64::MAX, f64::INFINITY), None), (spend(1, u64::MAX, f64::NAN), None)]);
    check("calls = 2", &[(call, None), (call, None), (call, Some(refused(Amount::Calls)))]);
    check("calls = 0", &[(call, Some(refused(Amount::Calls)))]);
    check(
        "tokens = 10",
        &[
            (spend(1, 11, 0.0), Some(refused(Amount::Tokens))),
            (spend(1, 10, 0.0), None),
            (call, Some(refused(Amount::Tokens))),
        ],
    );
    check(
        "cost = 1.5",
        &[
            (spend(1, 0, 1.0), None),
            (spend(1, 0, 1.0), Some(refused(Amount::Cost))),
            (spend(1, 0, f64::NAN), Some(refused(Amount::Cost))),
            (spend(1, 0, 0.5), None),
        ],
    );
    check(
        "time_ms = 10",
        &[(Spend::call(Some(Duration::from_millis(4)), 0), None), (call, None), (call, Some(refused(Amount::Time)))],
    );
}

#[test]
fn a_reservation_is_settled_or_dropped() {
    let spending = spending("calls = 3\ntokens = 100\nbytes = 100");
    reserve(&spending, Spend { bytes: 60, ..spend(1, 0, 0.0) }).settle(7);
    assert_eq!(spending.spent(), Spend { bytes: 7, ..spend(1, 0, 0.0) });
    let held = reserve(&spending, Spend { bytes: 93, ..spend(1, 0, 0.0) });
    assert_eq!(spending.reserve(Spend { bytes: 1, ..spend(1, 0, 0.0) }).err(), Some(refused(Amount::Bytes)));
    drop(held);
    assert_eq!(spending.spent(), Spend { bytes: 7, ..spend(2, 0, 0.0) });
    spending.charge(Spend::turn(Usage::new(97, 3), f64::NAN));
    let spent = Spend { turns: 1, bytes: 7, input_tokens: 97, output_tokens: 3, ..spend(2, 100, 0.0) };
    assert_eq!(spending.spent(), spent);
    assert_eq!(spending.exhausted_for_model(), Some(refused(Amount::Tokens)));
    assert_eq!(spending.reserve(Spend::call(None, 0)).err(), Some(refused(Amount::Tokens)));
}

#[test]
fn calls_without_budgets_reserve_nothing() {
    let spending = Spending::new(Vec::new(), 1);
    assert!(spending.is_unlimited());
    assert!(spending.reserve(Spend::call(Some(Duration::from_secs(1)), 60)).unwrap().is_none());
    assert!(spending.carve(60).unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn time_is_what_passed() {
    let spending = spending("time_ms = 100");
    let mut first = reserve(&spending, Spend::call(Some(Duration::from_millis(60)), 0));
    assert_eq!(first.time(), Some(Duration::from_millis(60)));
    let second = reserve(&spending, Spend::call(None, 0));
    assert_eq!(second.time(), Some(Duration::from_millis(40)));
    tokio::time::advance(Duration::from_millis(10)).await;
    first.settle(0);
    drop((first, second));
    assert_eq!(spending.spent().time, Duration::from_millis(20));
    // A future that is dropped midway books the time that it used.
    let dropped = tokio::time::timeout(Duration::from_millis(30), {
        let spending = spending.clone();
        async move {
            let _held = reserve(&spending, Spend::call(None, 0));
            std::future::pending::<()>().await;
        }
    });
    assert!(dropped.await.is_err());
    assert_eq!(spending.spent().time, Duration::from_millis(50));
    assert_eq!(reserve(&spending, Spend::call(None, 0)).time(), Some(Duration::from_millis(50)));
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_limit_share_what_is_left() {
    let spending = shared_by(3, "time_ms = 300");
    let ms = Duration::from_millis;
    let call = || spending.reserve(Spend::call(None, 0)).map(Option::unwrap);
    let held: Vec<_> = (0..3).map(|_| call().unwrap()).collect();
    assert!(held.iter().all(|call| call.time() == Some(ms(100))), "{held:?}");
    assert_eq!(call().err(), Some(refused(Amount::Time)), "a fourth one has no place");
    tokio::time::advance(ms(30)).await;
    drop(held);
    // 210 ms are left. A call with its own limit reserves that limit, and the other calls share the rest.
    let limited = reserve(&spending, Spend::call(Some(ms(10)), 0));
    assert_eq!(limited.time(), Some(ms(10)));
    let (one, two) = (call().unwrap(), call().unwrap());
    assert_eq!((one.time(), two.time()), (Some(ms(100)), Some(ms(100))));
    drop((limited, one, two));
    assert_eq!(spending.spent().time, ms(90), "the time that passed is booked, not the time that was held");
}

#[test]
fn a_parallel_batch_cannot_overshoot() {
    let spending = spending("calls = 100\ntokens = 1000");
    let granted: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let spending = spending.clone();
                scope.spawn(move || (0..100).filter(|_| spending.reserve(spend(1, 3, 0.0)).is_ok()).count())
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(granted, 100);
    assert_eq!(spending.spent(), spend(100, 300, 0.0));
}

#[test]
fn an_endless_cost_stays_a_number() {
    let spending = Spending::new(Vec::new(), 1);
    spending.charge(Spend::turn(Usage::new(1, 0), f64::INFINITY));
    spending.charge(Spend::turn(Usage::new(1, 0), f64::MAX));
    let text = serde_json::to_string(&spending.spent()).unwrap();
    assert_eq!(serde_json::from_str::<Spend>(&text).unwrap(), spending.spent());
}
