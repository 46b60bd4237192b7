//! The tenants take turns, and workers together keep the limit of runs for each of them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use jiff::Timestamp;

use super::*;

/// A model that tells how many runs of each tenant it answers at the same time. The tenant is the text of the user.
#[derive(Clone, Default)]
struct Busy(Arc<Mutex<BTreeMap<String, (u32, u32)>>>);

impl Busy {
    /// The most runs of a tenant at the same time.
    fn most(&self, tenant: &str) -> u32 {
        self.0.lock().expect("not poisoned").get(tenant).map_or(0, |(_, most)| *most)
    }

    fn count(&self, tenant: &str, change: impl Fn(u32) -> u32) {
        let mut counts = self.0.lock().expect("not poisoned");
        let (now, most) = counts.entry(tenant.to_owned()).or_default();
        *now = change(*now);
        *most = (*most).max(*now);
    }
}

#[async_trait]
impl ModelClient for Busy {
    fn name(&self) -> &'static str {
        "busy"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let tenant = request.messages.iter().rev().find_map(|message| match message {
            Message::User(_) => Some(message.text()),
            _ => None,
        });
        let tenant = tenant.expect("a message");
        self.count(&tenant, |now| now + 1);
        if tenant == "hangs" {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.count(&tenant, |now| now - 1);
        Ok(Decoded::new(&[Part::text("Done.")], FinishReason::Stop))
    }
}

/// Who was taken, in order, each with the number of polls until then.
type Taken = Arc<Mutex<Vec<(String, u32)>>>;

struct Fair {
    store: Arc<MemoryStore>,
    runner: ToolRunner,
    model: Busy,
    polls: Arc<AtomicU32>,
    listings: Arc<AtomicU32>,
    /// The pages of lanes among the listings.
    lanes: Arc<AtomicU32>,
    taken: Taken,
}

impl Fair {
    fn new(store: MemoryStore) -> Self {
        let (store, polls, listings, lanes) = (Arc::new(store), Arc::default(), Arc::default(), Arc::default());
        let runner = World::runner(Arc::clone(&store) as _);
        Self { store, runner, model: Busy::default(), polls, listings, lanes, taken: Taken::default() }
    }

    fn agent(&self) -> Agent {
        Agent::new(self.model.clone())
    }

    /// Enqueues a run of a tenant, or of a principal without one.
    async fn put(&self, id: &str, tenant: Option<&str>, principal: &str, text: &str) {
        let options = RunOptions::new().run_id(id).principal(principal);
        let options = tenant.into_iter().fold(options, RunOptions::tenant);
        let mut conversation = self.agent().converse(self.runner.run(options));
        conversation.accept(Input::from(text)).await.expect("a message");
        let saved = conversation.save().await.expect("saved");
        RunQueue::new(&self.runner).enqueue(&saved).await.expect("it is new");
    }

    async fn put_many(&self, count: usize, tenant: &str) {
        for number in 0..count {
            self.put(&format!("{tenant} {number}"), Some(tenant), "ada", tenant).await;
        }
    }

    fn worker(&self) -> Worker {
        self.refused(|_| None)
    }

    /// A worker some of whose writes fail, selected by the documents.
    fn refused(&self, refusal: impl Fn(&[Key]) -> Option<StoreError> + Send + Sync + 'static) -> Worker {
        let (polls, listings, lanes) = (Arc::clone(&self.polls), Arc::clone(&self.listings), Arc::clone(&self.lanes));
        let hook = move |method: &'static str| {
            // Each poll begins with the due runs of all lanes.
            polls.fetch_add(u32::from(method == "due_runs"), Ordering::AcqRel);
            lanes.fetch_add(u32::from(method == "lanes"), Ordering::AcqRel);
            let lists = matches!(method, "due_runs" | "due_runs of a lane" | "lanes" | "list");
            listings.fetch_add(u32::from(lists), Ordering::AcqRel);
            HookAction::Pass
        };
        let store = Arc::new(HookedStore::new(Arc::clone(&self.store) as _, hook).refusing(refusal));
        let (taken, polls) = (Arc::clone(&self.taken), Arc::clone(&self.polls));
        let worker = Worker::new(self.agent(), World::runner(store)).lease(Duration::from_hours(1));
        worker.prepare(move |stored, options| {
            let whom = stored.tenant.as_deref().unwrap_or("nobody").to_owned();
            taken.lock().expect("not poisoned").push((whom, polls.load(Ordering::Acquire)));
            options
        })
    }

    /// Enqueues a run each of a free tenant and of `others`. Returns the slots of the others.
    async fn beside(&self, others: u32) -> BTreeSet<Key> {
        let mut slots = BTreeSet::new();
        for number in 0..=others {
            let tenant = if number == 0 { "free".to_owned() } else { format!("tenant {number}") };
            self.put(&format!("of {tenant}"), Some(&tenant), "ada", &tenant).await;
        }
        for run in self.store.due_runs(Timestamp::MAX, None, 100).await.expect("a list") {
            if &*run.run_id != "of free" {
                let (tenant, _) = run.lane.split_once('/').expect("a tenant");
                slots.insert(Key::from_parts(DocumentKind::Slots, tenant, ""));
            }
        }
        slots
    }

    fn taken(&self) -> Vec<(String, u32)> {
        self.taken.lock().expect("not poisoned").clone()
    }

    /// Waits until so many runs were taken.
    async fn took(&self, count: usize) {
        while self.taken().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn has_taken(&self, tenant: &str) {
        while !self.taken().iter().any(|(whom, _)| whom == tenant) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// One tenant has a thousand due runs, another one a single run, which became due last.
#[tokio::test(start_paused = true)]
async fn a_tenant_with_many_runs_holds_no_other_up() {
    for places in [1, 2, 8] {
        let fair = Fair::new(MemoryStore::new());
        fair.put_many(1000, "acme").await;
        fair.put("last", Some("beta"), "bob", "beta").await;
        with([fair.worker().concurrency(places)], fair.has_taken("beta")).await;
        let taken = fair.taken();
        let at = taken.iter().position(|(whom, _)| whom == "beta").expect("it was taken");
        assert!(at <= 1, "it has the first or the second turn with {places} places, not turn {at}");
        assert!(taken[at].1 <= 2, "it is taken in the first or the second poll: {}", taken[at].1);
        let listings = fair.listings.load(Ordering::Acquire);
        assert!(listings <= 3 * u32::try_from(taken.len() + 2).expect("few"), "a few pages: {listings}");
    }
}

/// Six hundred tenants, more than a page of lanes, are next to one with many runs.
#[tokio::test(start_paused = true)]
async fn turns_reach_every_tenant() {
    let fair = Fair::new(MemoryStore::new());
    fair.put_many(400, "acme").await;
    for number in 0..600 {
        fair.put(&format!("of {number}"), Some(&format!("tenant {number}")), "ada", "one").await;
    }
    with([fair.worker().concurrency(4)], fair.took(605)).await;
    let taken = fair.taken();
    let own = taken[..605].iter().filter(|(whom, _)| whom == "acme").count();
    assert!(own <= 5, "the tenant with many runs had {own} turns of 605");
}

/// The runs of one principal without a tenant count as those of a tenant.
#[tokio::test(start_paused = true)]
async fn principals_without_a_tenant_take_turns() {
    let fair = Fair::new(MemoryStore::new());
    for number in 0..300 {
        fair.put(&format!("of ada {number}"), None, "ada", "ada").await;
    }
    fair.put("of bob", None, "bob", "bob").await;
    let of_bob = async {
        while fair.model.most("bob") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    with([fair.worker().concurrency(2).runs_per_tenant(1)], of_bob).await;
    assert_eq!(fair.model.most("ada"), 1);
    assert!(fair.taken().len() <= 4, "{:?}", fair.taken());
}

#[tokio::test(start_paused = true)]
async fn workers_together_keep_the_limit_of_a_tenant() {
    let fair = Fair::new(MemoryStore::new());
    fair.put_many(40, "acme").await;
    fair.put_many(4, "beta").await;
    with([0, 1, 2].map(|_| fair.worker().runs_per_tenant(2)), async {
        fair.took(44).await;
    })
    .await;
    assert_eq!((fair.model.most("acme"), fair.model.most("beta")), (2, 2));
}

/// All due runs belong to a tenant that is at its limit: the worker polls once a second, and takes others at once.
#[tokio::test(start_paused = true)]
async fn runs_over_the_limit_hold_nothing_up_and_do_not_keep_a_worker_busy() {
    let clock = Arc::new(ManualClock::at(Timestamp::now()));
    let fair = Fair::new(MemoryStore::with_clock(Arc::clone(&clock)));
    for number in 0..600 {
        fair.put(&format!("acme {number}"), Some("acme"), "ada", "hangs").await;
    }
    let lost = tokio::spawn(fair.worker().runs_per_tenant(1).run(std::future::pending()));
    fair.took(1).await;
    // A worker dies with its run; the place stays taken until its lease ends.
    lost.abort();
    drop(lost.await);
    let blocked = async {
        let before = fair.listings.load(Ordering::Acquire);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(fair.taken().len(), 1, "the place is taken");
        let listings = fair.listings.load(Ordering::Acquire) - before;
        assert!(listings <= 3 * 22, "two or three listings a second: {listings}");
        // Messages wake the worker, which walks through the lanes no more often.
        let before = fair.lanes.load(Ordering::Acquire);
        for number in 0..100 {
            fair.put(&format!("more {number}"), Some("acme"), "ada", "hangs").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let lanes = fair.lanes.load(Ordering::Acquire) - before;
        assert!(lanes <= 2 * 4, "a page or two a second: {lanes}");
        fair.put("other", Some("beta"), "bob", "beta").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(fair.taken().last().map(|(whom, _)| whom.as_str()), Some("beta"));
        clock.advance(Duration::from_hours(1));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(fair.taken().last().map(|(whom, _)| whom.as_str()), Some("acme"), "the place is free");
        assert_eq!(fair.taken().len(), 3);
    };
    // The hanging run is left behind, so the worker does not stop in good order.
    let next = tokio::spawn(fair.worker().runs_per_tenant(1).run(std::future::pending()));
    blocked.await;
    next.abort();
}

/// Another process holds the slots of tenants: the worker leaves these tenants out, and polls on.
#[tokio::test(start_paused = true)]
async fn a_locked_tenant_costs_the_others_no_poll() {
    // The worker begins at a random tenant.
    for _ in 0..16 {
        let fair = Fair::new(MemoryStore::new());
        let locked = fair.beside(1).await;
        let (polls, leased) = (Arc::clone(&fair.polls), Arc::new(AtomicU32::new(u32::MAX)));
        let first = Arc::clone(&leased);
        let refusal = move |keys: &[Key]| {
            if keys.contains(&Key::run("of free")) {
                first.fetch_min(polls.load(Ordering::Acquire), Ordering::AcqRel);
            }
            keys.iter().any(|key| locked.contains(key)).then(|| StoreError::Locked("it is held".into()))
        };
        let worker = fair.refused(refusal).runs_per_tenant(1);
        let waited = tokio::time::timeout(Duration::from_secs(10), with([worker], fair.has_taken("free")));
        waited.await.expect("it has its turn");
        assert_eq!(leased.load(Ordering::Acquire), 1, "it is leased in the first poll");
    }
}

/// An error that ends a poll: the next poll begins with the next tenant.
#[tokio::test(start_paused = true)]
async fn a_tenant_whose_lease_fails_does_not_have_every_turn() {
    for (error, most) in [("locked", 5), ("busy", 8)] {
        let fair = Fair::new(MemoryStore::new());
        let failing = fair.beside(7).await;
        let refusal = move |keys: &[Key]| {
            let is_failing = keys.iter().any(|key| failing.contains(key));
            is_failing.then(|| if error == "busy" { StoreError::Busy } else { StoreError::Locked("it is held".into()) })
        };
        let waited = tokio::time::timeout(Duration::from_secs(100), async {
            with([fair.refused(refusal).runs_per_tenant(1)], fair.has_taken("free")).await;
        });
        waited.await.expect("it has its turn");
        let polls = fair.taken()[0].1;
        assert!(polls <= most, "{error}: within {most} polls, not {polls}");
    }
}

/// More runs than a page that this library cannot read come before the others of their tenant.
#[tokio::test(start_paused = true)]
async fn unreadable_runs_do_not_hide_those_behind_them() {
    let fair = Fair::new(MemoryStore::new());
    for number in 0..400 {
        fair.put(&format!("bad {number}"), Some("acme"), "ada", "acme").await;
    }
    fair.put_many(3, "acme").await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let refusal = move |keys: &[Key]| {
        let is_bad = keys.iter().any(|key| key.scope().starts_with("bad "));
        counted.fetch_add(u32::from(is_bad), Ordering::AcqRel);
        is_bad.then(|| StoreError::Corrupt("a new member".into()))
    };
    let worker = fair.refused(refusal);
    let waited = tokio::time::timeout(Duration::from_secs(50), with([worker], fair.took(3)));
    waited.await.expect("they are found");
    assert_eq!(tries.load(Ordering::Acquire), 400, "each is tried once");
}

/// A run that waits for a person has no place.
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_is_not_counted() {
    let world = World::new("waits and runs 0");
    let others: Vec<_> = (1..4).map(|number| world.beside(&format!("waits and runs {number}"))).collect();
    for world in others.iter().chain([&world]) {
        world.enqueue("Go.").await;
    }
    with([world.lasting().runs_per_tenant(1)], async {
        for world in others.iter().chain([&world]) {
            world.reaches("approval_required").await;
        }
    })
    .await;
    let depth = world.queue().depth().await.expect("it counts");
    assert_eq!((depth.due, depth.leased, depth.waiting), (0, 0, 4));
}

impl World {
    /// Another run of the same store.
    pub(super) fn beside(&self, run_id: &str) -> Self {
        Self { store: Arc::clone(&self.store), asked: Arc::clone(&self.asked), run_id: run_id.to_owned() }
    }
}
