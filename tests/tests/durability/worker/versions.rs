//! A run remembers the version under which it began; a worker of another version may leave it alone.

use std::sync::Mutex;

use tests::tree::Tree;
use tool_runtime::ToolCatalog;
use tool_runtime::agent::Graph;

use super::*;

type Reports = Arc<Mutex<Vec<String>>>;

impl World {
    /// A worker with other instructions.
    fn newer(&self, leaves: bool, reports: &Reports) -> Worker {
        let catalog = world::tools().tool::<write>().tool::<send>().build().expect("a catalog");
        self.over(catalog, leaves, reports)
    }

    fn over(&self, catalog: ToolCatalog, leaves: bool, reports: &Reports) -> Worker {
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        let (store, reports) = (Arc::clone(&self.store), Arc::clone(reports));
        let runner = ToolRunner::builder(catalog, policy).approvals(true).store(store);
        let runner = runner.failures(move |failure| {
            reports.lock().expect("not poisoned").push(failure.code.to_owned());
        });
        let runner = runner.build().expect("a runner");
        let worker = Worker::new(self.agent().instructions("Be brief."), runner);
        worker.lease(Duration::from_hours(1)).leave_other_versions(leaves)
    }

    async fn version(&self) -> Option<Hash> {
        self.queue().find(&self.run_id, Some("acme")).await.expect("it is there").0.version
    }

    /// Begins the run under the first version, up to its call that waits.
    async fn begin(&self) {
        self.enqueue("Go.").await;
        assert_eq!(self.version().await, None, "it has not begun");
        with([self.lasting()], self.reaches("approval_required")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_version_is_left_to_its_own() {
    let world = World::new("of its version");
    world.begin().await;
    let version = world.version().await.expect("it began");
    let other = world.beside("of another version");
    let reports = Reports::default();
    Box::pin(with([world.newer(true, &reports)], async {
        other.enqueue("Hello.").await;
        other.reaches("answered").await;
        // A decision arrives, and makes the run due.
        world.decide(ApprovalDecision::Approve).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(world.state().await, "approval_required", "it is left alone");
        world.post(Input::from("And now?")).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(world.queue().depth().await.expect("it counts").due, 1, "it stays due");
    }))
    .await;
    assert_ne!(other.version().await, Some(version), "each version has its own hash");
    assert_eq!(*reports.lock().expect("not poisoned"), ["other_version"], "operators learn of it once");
    with([world.lasting().leave_other_versions(true)], async {
        world.reaches("answered").await;
        while world.queue().depth().await.expect("it counts").due > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(world.version().await, Some(version));
}

/// Without the option, a worker continues every run, and the run keeps its version.
#[tokio::test(start_paused = true)]
async fn a_run_of_another_version_is_continued_by_default() {
    let world = World::new("of any version");
    world.begin().await;
    let version = world.version().await.expect("it began");
    let reports = Reports::default();
    with([world.newer(false, &reports)], async {
        world.decide(ApprovalDecision::Approve).await;
        world.reaches("answered").await;
    })
    .await;
    assert_eq!((world.version().await, reports.lock().expect("not poisoned").len()), (Some(version), 0));
}

/// The instructions of an agent inside a graph are part of the version, whatever version its author wrote.
#[tokio::test(start_paused = true)]
async fn the_instructions_of_a_graph_are_part_of_the_version() {
    let (world, reports, mut versions) = (World::new("with a graph"), Reports::default(), Vec::new());
    for (number, instructions) in ["Be brief.", "Be exact.", "Be brief."].into_iter().enumerate() {
        let graph = Graph::new("helper", "1", world.agent().instructions(instructions));
        let graph = graph.description("Doubles numbers.").tools(["rig__double"]);
        let catalog = world::tools().tool::<write>().tool::<send>().dynamic(graph).build().expect("a catalog");
        let run = world.beside(&format!("with a graph {number}"));
        run.enqueue("Hello.").await;
        with([run.over(catalog, false, &reports)], run.reaches("answered")).await;
        versions.push(run.version().await.expect("it began"));
    }
    assert_ne!(versions[0], versions[1]);
    assert_eq!(versions[0], versions[2]);
}

/// A run that an earlier release wrote has no version: everybody continues it, and it gets none.
#[tokio::test(start_paused = true)]
async fn a_run_without_a_version_is_continued_by_everybody() {
    let world = World::new("of no version");
    world.begin().await;
    let key = Key::run(world.run_id.as_str());
    let mut run = json_of(
        &world.store.read(std::slice::from_ref(&key)).await.expect("it reads").pop().flatten().expect("it is there"),
    );
    let run_of = run["run"].as_object_mut().expect("a run");
    assert!(run_of.remove("version").is_some());
    let mut saved: serde_json::Value =
        serde_json::from_str(run_of["document"].as_str().expect("a text")).expect("a conversation");
    assert!(saved["state"].as_object_mut().expect("a state").remove("version").is_some());
    run_of["document"] = saved.to_string().into();
    let old = document(key.clone(), &run);
    let write = move |transaction: &mut Transaction| transaction.put(old.clone());
    world.store.update(vec![key], Box::new(write)).await.expect("it is kept");
    let reports = Reports::default();
    with([world.newer(true, &reports)], async {
        world.decide(ApprovalDecision::Approve).await;
        world.reaches("answered").await;
    })
    .await;
    assert_eq!((world.version().await, reports.lock().expect("not poisoned").len()), (None, 0));
}

/// An application of another version that continues a run itself leaves its version as it is.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_over_keeps_its_version() {
    let world = World::new("taken over");
    world.begin().await;
    let version = world.version().await.expect("it began");
    world.decide(ApprovalDecision::Approve).await;
    let runner = World::runner(Arc::clone(&world.store) as _);
    let taken = RunQueue::new(&runner).take(&world.run_id, Some("acme"), Some("ada"), "web").await;
    let (mut leased, saved) = taken.expect("it is free");
    let options = RunOptions::new().principal("ada").tenant("acme");
    let agent = world.agent().instructions("Be brief.");
    let mut conversation = agent.restore(&runner, leased.options(options), saved).await.expect("restored");
    leased.accept_posts(&mut conversation).await.expect("a decision");
    leased.receive(&mut conversation, Input::new()).await.expect("answered");
    leased.release(None).await.expect("it has the run");
    assert_eq!((world.version().await, world.state().await), (Some(version), "answered".to_owned()));
}

/// Many runs of another version are due before the only one that a worker may take.
#[tokio::test(start_paused = true)]
async fn runs_of_another_version_hold_nothing_up() {
    let world = World::new("last of all");
    let first = world.beside("other 0");
    first.begin().await;
    let read = world.store.read(&[Key::run("other 0")]).await.expect("it reads").pop().flatten();
    let begun = json_of(&read.expect("it is there"));
    for number in 1..400 {
        let key = Key::run(format!("other {number}"));
        let mut copy = begun.clone();
        copy["run"]["run_id"] = format!("other {number}").into();
        copy["run"]["due"] = "2020-01-01T00:00:00Z".into();
        let copy = document(key.clone(), &copy);
        let write = move |transaction: &mut Transaction| transaction.put(copy.clone());
        world.store.update(vec![key], Box::new(write)).await.expect("it is kept");
    }
    world.enqueue("Hello.").await;
    let reports = Reports::default();
    with([world.newer(true, &reports)], world.reaches("answered")).await;
    assert_eq!(*reports.lock().expect("not poisoned"), ["other_version"]);
    assert_eq!(world.queue().depth().await.expect("it counts").due, 399, "they stay due");
    assert_eq!(world.queue().depth_of("nobody").await.expect("it counts").due, 0);
}

/// The gauges that a collector gets: a run of another version is due, one has a lease, and one waits for a person.
#[tokio::test(start_paused = true)]
async fn a_worker_measures_the_queue() {
    let tree = Tree::default();
    let _listening = tree.listen();
    let world = World::new("measured");
    world.begin().await;
    let read = world.store.read(&[Key::run("measured")]).await.expect("it reads").pop().flatten();
    let begun = json_of(&read.expect("it is there"));
    let now = world.store.now().await.expect("a time");
    let holder = json!({"owner": "another", "until": now + jiff::SignedDuration::from_hours(9)});
    for (id, holder) in [("due", serde_json::Value::Null), ("leased", holder)] {
        let (key, mut copy) = (Key::run(id), begun.clone());
        (copy["run"]["run_id"], copy["run"]["holder"]) = (id.into(), holder);
        copy["run"]["due"] = json!(now - jiff::SignedDuration::from_hours(1));
        let run = document(key.clone(), &copy);
        let write = move |transaction: &mut Transaction| transaction.put(run.clone());
        world.store.update(vec![key], Box::new(write)).await.expect("it is kept");
    }
    with([world.newer(true, &Reports::default())], tokio::time::sleep(Duration::from_secs(90))).await;
    let measured = tree.events("gauge.tool_runtime.queue.due").pop().expect("it is measured");
    let gauge = |name: &str| measured.fields[&format!("gauge.tool_runtime.queue.{name}")].parse::<f64>();
    assert_eq!(["due", "leased", "waiting"].map(|name| gauge(name).expect("a number").to_string()), ["1", "1", "1"]);
    assert!(gauge("age").expect("a number") >= 3600.0, "{measured:?}");
    assert_eq!(measured.target, "tool_runtime::metrics");
}
