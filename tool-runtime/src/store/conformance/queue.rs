//! The queue of due runs: listed by age and by lane, counted, and limited for each tenant.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::conformance::ledger::LONG;
use crate::store::conformance::{ask, at, read, several, update};
use crate::store::runs::{self, AfterUpdate, Due, Leasing, RunUpdate, Taker};
use crate::store::{Document, DueRun, Holder, Key, QueueDepth, RunLease, Store, StoredRun, Transaction};
use crate::tool::Hash;

const OURS: Hash = Hash([1; 32]);
const OTHERS: Hash = Hash([2; 32]);

fn run(id: &str, tenant: &str, due: Timestamp) -> StoredRun {
    StoredRun { tenant: Some(tenant.into()), due: Some(due), ..StoredRun::new(id, "{}") }
}

async fn put(store: &dyn Store, runs: impl IntoIterator<Item = StoredRun>) {
    for run in runs {
        let key = Key::run(Arc::clone(&run.run_id));
        let document = Document::Run(Box::new(run));
        let named = key.clone();
        let write = move |transaction: &mut Transaction| transaction.set(&named, document.clone());
        update(store, &[key], write).await.expect("it writes");
    }
}

fn ids(runs: &[DueRun]) -> Vec<&str> {
    runs.iter().map(|run| &*run.run_id).collect()
}

pub(super) async fn due_runs_are_listed_by_age(store: Arc<dyn Store>) {
    let store = &*store;
    let held = Some(Holder { owner: "one".into(), until: at(30) });
    let long = "\0\\".repeat(1000);
    put(
        store,
        [
            run("late", "acme", at(20)),
            run("early", "acme", at(10)),
            StoredRun { holder: held, ..run("held", "acme", at(5)) },
            StoredRun { due: None, ..run("never", "acme", at(0)) },
            StoredRun { held_back: true, ..run("back", "acme", at(0)) },
            StoredRun { version: Some(OURS), ..run("ours", "acme", at(15)) },
            run(&long, &long, at(16)),
        ],
    )
    .await;
    let listed = store.due_runs(at(20), None, 10).await.expect("it lists");
    assert_eq!(ids(&listed), ["early", "ours", &long, "late"], "the longest due runs come first");
    assert_eq!(listed[0].due, at(10));
    let first = store.due_runs(at(20), None, 2).await.expect("it lists");
    assert_eq!(ids(&first), ["early", "ours"], "the limit is respected");
    let of_lane = store.due_runs(at(20), Some(&listed[0].lane), 10).await.expect("it lists");
    assert_eq!(ids(&of_lane), ["early", "late"], "each version has a separate lane");
    let later = store.due_runs(at(30), Some(&listed[0].lane), 10).await.expect("it lists");
    assert_eq!(ids(&later), ["early", "late", "held"], "a run is due once its lease has ended");
}

pub(super) async fn lanes_are_listed_in_pages(store: Arc<dyn Store>) {
    let store = &*store;
    assert_eq!(store.lanes(at(100), "", 10).await.expect("it lists"), []);
    let of = |principal: &str, due| StoredRun {
        tenant: None,
        principal: Some(principal.into()),
        ..run(&format!("of {principal} {due}"), "", due)
    };
    put(store, (0..40).map(|number| run(&format!("many {number}"), "acme", at(40 - number)))).await;
    put(store, (0..5).map(|number| run(&format!("one {number}"), &format!("tenant {number}"), at(100)))).await;
    put(store, [of("ada", at(3)), of("ada", at(2)), of("bob", at(4)), run("of ada's tenant", "ada", at(5))]).await;
    put(store, [StoredRun { due: None, ..run("idle", "idle", at(0)) }]).await;
    let (mut lanes, mut after): (Vec<DueRun>, Arc<str>) = (Vec::new(), "".into());
    for _ in 0..16 {
        let page = store.lanes(at(100), &after, 2).await.expect("it lists");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Arc::clone(&last.lane);
        lanes.extend(page);
    }
    assert!(lanes.is_sorted_by(|one, other| one.lane < other.lane), "in the order of the lanes");
    assert_eq!(store.lanes(at(100), "", 10).await.expect("it lists"), lanes, "pages have the same lanes");
    let due: Vec<_> = lanes.iter().filter(|run| run.due <= at(50)).cloned().collect();
    let mut listed = store.lanes(at(50), "", 10).await.expect("it lists");
    listed.retain(|run| run.due <= at(50));
    assert_eq!(listed, due, "the lanes with a due run");
    let first: BTreeSet<_> = ids(&lanes).into_iter().collect();
    let expected = ["many 39", "one 0", "one 1", "one 2", "one 3", "one 4"].into_iter();
    let (ada, bob) = (format!("of ada {}", at(2)), format!("of bob {}", at(4)));
    let expected: BTreeSet<_> = expected.chain([&*ada, &bob, "of ada's tenant"]).collect();
    assert_eq!(first, expected, "the first run of each lane; a principal without a tenant has a lane");
}

pub(super) async fn a_short_page_is_the_last(store: Arc<dyn Store>) {
    let store = &*store;
    let of = |number: i64| run(&format!("run {number}"), &format!("tenant {}", number % 300), at(number));
    put(store, (0..600).map(of)).await;
    for limit in [250, 256, 1000] {
        let due = store.due_runs(at(1000), None, limit).await.expect("it lists");
        let lanes = store.lanes(at(1000), "", limit).await.expect("it lists");
        assert_eq!((due.len(), lanes.len()), (limit.min(600), limit.min(300)), "a page of {limit} is whole");
    }
}

pub(super) async fn runs_are_counted(store: Arc<dyn Store>) {
    let store = &*store;
    assert_eq!(store.depth(at(0), None).await.expect("it counts"), QueueDepth::default());
    let held = |until| Some(Holder { owner: "one".into(), until });
    put(store, (0..7).map(|number| run(&format!("due {number}"), "acme", at(number)))).await;
    put(
        store,
        [
            run("waits", "acme", at(50)),
            StoredRun { due: None, ..run("idle", "acme", at(0)) },
            StoredRun { holder: held(at(20)), ..run("held", "acme", at(1)) },
            StoredRun { holder: held(at(9)), ..run("lost", "acme", at(1)) },
            StoredRun { holder: held(Timestamp::MAX), ..run("of an engine", "engine", at(1)) },
        ],
    )
    .await;
    let age = |seconds| Some(Duration::from_secs(seconds));
    let depth = store.depth(at(10), None).await.expect("it counts");
    assert_eq!(depth, QueueDepth { due: 8, oldest: age(10), leased: 1, waiting: 1 });
    let depth = store.depth(at(60), None).await.expect("it counts");
    assert_eq!(depth, QueueDepth { due: 10, oldest: age(60), leased: 0, waiting: 0 });
    put(store, [run("other", "beta", at(8)), StoredRun { version: Some(OURS), ..run("ours", "beta", at(50)) }]).await;
    for (tenant, due, oldest, waiting) in [("acme", 8, age(10), 1), ("beta", 1, age(2), 1), ("nobody", 0, None, 0)] {
        let slots = run("", tenant, at(0)).slots();
        let depth = store.depth(at(10), Some(slots.scope())).await.expect("it counts");
        let leased = u64::from(tenant == "acme");
        assert_eq!(depth, QueueDepth { due, oldest, leased, waiting }, "{tenant}: runs of all its versions");
    }
    let lanes = store.lanes(Timestamp::MAX, "", 10).await.expect("it lists");
    assert_eq!(lanes.len(), 3, "a run of an engine has no lane among those of workers");
}

fn taker(owner: &str, lease_duration: Duration, per_tenant: usize) -> Taker {
    Taker { owner: owner.into(), lease_duration, version: None, per_tenant: Some(per_tenant) }
}

async fn lease(store: &dyn Store, run: &StoredRun, taker: Taker) -> Leasing {
    let (run_id, slots) = (Arc::clone(&run.run_id), run.slots());
    let keys = [Key::run(Arc::clone(&run_id)), slots];
    ask(store, keys, move |transaction| runs::lease(transaction, &run_id, &taker)).await.expect("it answers")
}

async fn release(store: &dyn Store, run: &StoredRun, lease: RunLease, version: Option<Hash>) {
    let keys = [Key::run(Arc::clone(&run.run_id)), run.slots()];
    let next = AfterUpdate::Release { due: Due::Now, news: run.news };
    let update = RunUpdate { document: None, state: None, version, taken: None, failures: 0, next };
    ask(store, keys, move |transaction| runs::save(transaction, &lease, &update)).await.expect("it has the run");
}

pub(super) async fn the_leased_runs_of_a_tenant_are_limited(store: Arc<dyn Store>) {
    let all: Vec<_> = (0..8).map(|number| run(&format!("run {number}"), "acme", at(0))).collect();
    put(&*store, all.clone()).await;
    let take = |store: Arc<dyn Store>, task: usize| async move {
        lease(&*store, &run(&format!("run {task}"), "acme", at(0)), taker(&format!("worker {task}"), LONG, 3)).await
    };
    let taken = several(&store, 8, take).await;
    let mut held: Vec<_> = taken
        .into_iter()
        .filter_map(|taken| match taken {
            Leasing::Leased(lease, run) => Some((lease, run)),
            Leasing::Full => None,
            Leasing::Gone => panic!("it is due"),
        })
        .collect();
    assert_eq!(held.len(), 3, "workers that take at the same moment keep the limit together");
    let free = |held: &[(RunLease, Box<StoredRun>)]| {
        let is_held = |run: &&StoredRun| held.iter().any(|(lease, _)| lease.run_id == run.run_id);
        all.iter().find(|run| !is_held(run)).expect("five are free").clone()
    };
    assert!(matches!(lease(&*store, &free(&held), taker("next", LONG, 3)).await, Leasing::Full));
    put(&*store, [run("other", "beta", at(0))]).await;
    let other = lease(&*store, &run("other", "beta", at(0)), taker("next", LONG, 3)).await;
    assert!(matches!(other, Leasing::Leased(..)), "another tenant has its own limit");
    let (released, of) = held.pop().expect("three are held");
    release(&*store, &of, released, None).await;
    // This worker dies at once.
    let Leasing::Leased(lost, of) = lease(&*store, &free(&held), taker("lost", Duration::ZERO, 3)).await else {
        panic!("a released run frees a place");
    };
    let Leasing::Leased(..) = lease(&*store, &of, taker("next", LONG, 3)).await else {
        panic!("a lease that ended frees a place");
    };
    assert!(matches!(lease(&*store, &free(&held), taker("more", LONG, 3)).await, Leasing::Gone | Leasing::Full));
    let keys = [Key::run(Arc::clone(&lost.run_id)), of.slots()];
    let renewed = ask(&*store, keys, move |transaction| runs::renew(transaction, &lost, LONG)).await;
    assert!(renewed.is_err(), "a worker that lost its run cannot renew a lease");
    // A short lease that is renewed keeps its place.
    put(&*store, [run("short", "gamma", at(0)), run("waits", "gamma", at(0))]).await;
    let short = run("short", "gamma", at(0));
    let Leasing::Leased(held, _) = lease(&*store, &short, taker("one", LONG / 2, 1)).await else {
        panic!("it is due");
    };
    let keys = [Key::run("short"), short.slots()];
    ask(&*store, keys, move |transaction| runs::renew(transaction, &held, LONG)).await.expect("it has the run");
    let Some(Document::Slots(slots)) = read(&*store, &short.slots()).await else { panic!("the slots are kept") };
    let now = store.now().await.expect("a time");
    let half = now.checked_add(LONG / 2).expect("near");
    assert!(slots.slots.len() == 1 && slots.slots[0].until > half, "the place lasts as long as the lease");
}

pub(super) async fn a_run_keeps_its_version(store: Arc<dyn Store>) {
    let begun = run("begun", "acme", at(0));
    put(&*store, [begun.clone()]).await;
    let as_of = |version| Taker { version, per_tenant: None, ..taker("worker", LONG, 1) };
    for version in [OURS, OTHERS] {
        let Leasing::Leased(held, run) = lease(&*store, &begun, as_of(None)).await else { panic!("it is due") };
        release(&*store, &run, held, Some(version)).await;
    }
    let listed = store.due_runs(Timestamp::MAX, None, 10).await.expect("it lists");
    let [ours, others] = [OURS, OTHERS].map(|version| as_of(Some(version)));
    assert!(ours.takes_lane(&listed[0].lane) && !others.takes_lane(&listed[0].lane), "the lane names the version");
    assert!(matches!(lease(&*store, &begun, others).await, Leasing::Gone), "it is left alone");
    assert!(matches!(lease(&*store, &begun, ours).await, Leasing::Leased(..)), "it is continued by its version");
}
