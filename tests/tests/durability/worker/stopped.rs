//! Workers that are stopped past their lease, as by `SIGSTOP`, and continue after another one took their run.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::*;

thread_local! {
    /// Where this thread is stopped, once.
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

struct Stop {
    place: &'static str,
    reached: oneshot::Sender<()>,
    continued: mpsc::Receiver<()>,
}

/// Stops the thread, and everything that runs on it, if it is to be stopped at this place.
pub(super) fn here(place: &'static str) {
    if let Some(stop) = STOP.with_borrow_mut(|stop| stop.take_if(|stop| stop.place == place)) {
        stop.reached.send(()).expect("somebody waits");
        stop.continued.recv().expect("it is continued");
    }
}

impl World {
    /// Everything that the store holds of the run.
    async fn kept(&self) -> Vec<String> {
        let run = Key::run(self.run_id.as_str());
        let read = self.store.read(&[run]).await.expect("it reads");
        let mut kept: Vec<_> = read.iter().flatten().map(|run| run.to_json().expect("a document")).collect();
        for space in [DocumentKind::Call, DocumentKind::Waiting, DocumentKind::Decided, DocumentKind::Post] {
            let mut query = Query::new(space);
            query.scope = Some(self.run_id.as_str().into());
            for listed in self.store.list(&query).await.expect("a list") {
                kept.push(format!("{:?} {:?}", listed.key, listed.to_json().ok()));
            }
        }
        let records = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        kept.extend(records.iter().map(|sealed| format!("{sealed:?}")));
        kept
    }
}

/// Stops a worker at a place until another one has taken its run, and returns how the calls of the run ended.
async fn stopped_at(place: &'static str) -> (Vec<(String, Outcome)>, BTreeMap<String, u32>) {
    stopped_in(place).await.0
}

/// As [`stopped_at`], with the number of model requests.
async fn stopped_in(place: &'static str) -> ((Vec<(String, Outcome)>, BTreeMap<String, u32>), u32) {
    let world = World::new(format!("stopped in the {place}"));
    world.enqueue("Go.").await;
    let (reached, stopped) = oneshot::channel();
    let (proceed, continued) = mpsc::channel();
    let (end, ended) = oneshot::channel::<()>();
    let (is_back, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let hook = {
        let (is_back, writes) = (Arc::clone(&is_back), Arc::clone(&writes));
        move |method: &'static str| {
            if matches!(method, "update" | "append") && is_back.load(Ordering::Acquire) {
                writes.fetch_add(1, Ordering::AcqRel);
            }
            HookAction::Pass
        }
    };
    let worker = world.worker_on(Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook)));
    let worker = worker.prepare(|_, options| {
        here("beginning");
        options
    });
    let thread = std::thread::spawn(move || {
        STOP.set(Some(Stop { place, reached, continued }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(worker.run(async { drop(ended.await) })).expect("the store is there");
    });
    stopped.await.expect("it gets there");
    with([world.lasting()], world.reaches("approval_required")).await;
    let before = world.kept().await;
    is_back.store(true, Ordering::Release);
    proceed.send(()).expect("it is stopped");
    while writes.load(Ordering::Acquire) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    end.send(()).expect("it works");
    tokio::task::spawn_blocking(|| thread.join()).await.expect("it is joined").expect("no panic");
    assert_eq!(world.kept().await, before, "{place}: the run is another worker's");
    world.decide(ApprovalDecision::Approve).await;
    with([world.lasting()], world.reaches("answered")).await;
    (world.ends().await, world.asked.load(Ordering::Acquire))
}

/// A worker that is woken after its lease looks at it before it asks a model.
#[tokio::test]
async fn a_model_is_not_asked_for_a_run_that_somebody_else_has() {
    let ((records, _), asked) = stopped_in("beginning").await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(asked, 3, "once for each turn");
}

#[tokio::test]
async fn a_model_that_answers_after_the_lease_is_not_heard() {
    let (records, effects) = stopped_at("model").await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(effects.into_values().collect::<Vec<_>>(), [1; 4]);
}

#[tokio::test]
async fn a_call_that_ends_after_the_lease_has_the_record_of_who_took_over() {
    let (records, effects) = stopped_at("tool").await;
    let expected = ALL.map(|id| (id.to_owned(), if id == "w1" { Outcome::OutcomeUnknown } else { Outcome::Ok }));
    assert_eq!(records, expected);
    assert_eq!(effects.into_values().collect::<Vec<_>>(), [1; 4]);
}
