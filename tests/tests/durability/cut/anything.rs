//! Everything that may happen to calls over time, in a random order: processes begin, end, stop, are killed and come
//! back, runs are moved, people decide on calls that they may and may not decide on, stores fail, and clocks jump.
//! `ANYTHING=20000 cargo test -p tests --test durability anything` tries more orders.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use tests::Shown as _;

use tool_runtime::ToolContext;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{Clock as _, StoreError};

use super::*;

/// A call: run, principal, tenant, id, number.
type Of = (String, String, String, String, u32);
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The events, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Happened {
    /// A caller hands this call to the gate. The number 0 stands for a call with any number.
    Begins(Of),
    TookEffect(Of),
    /// A caller was told that the call did not run.
    DidNotRun(Of, Outcome),
    /// Further information for a check that fails.
    Note(String),
}

static LOG: Mutex<Vec<Happened>> = Mutex::new(Vec::new());

fn log(happened: Happened) {
    LOG.lock().unwrap().push(happened);
}

/// Has an effect, and takes its time before and after.
#[tool(name = "cut__keyed", effect = state_change, redact = ["$"])]
async fn keyed(
    ctx: &ToolContext,
    /// Which.
    number: u32,
) -> Result<u32, ToolError> {
    let of = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let call = ctx.call_id().to_string();
    for _ in 0..number % 4 {
        tokio::task::yield_now().await;
    }
    log(Happened::TookEffect((ctx.run_id().to_owned(), of(ctx.principal()), of(ctx.tenant()), call, number)));
    for _ in 0..number % 3 {
        tokio::task::yield_now().await;
    }
    Ok(number)
}

const PARTIES: [(&str, &str); 3] = [("ada", "acme"), ("eve", "acme"), ("ada", "other")];
const DECIDERS: [(&str, &str); 5] =
    [("grace", "acme"), ("grace", "other"), ("ada", "acme"), ("eve", "acme"), ("eve", "other")];
const FREE: &str = "allowed_tools = ['cut__keyed']\n[loop_guard]\nwarn_at = 0\nstop_at = 0\n";
const ASKED: &str = "allowed_tools = ['cut__keyed']\nrequire_approval_for_tools = ['cut__keyed']\n[loop_guard]\nwarn_at = 0\nstop_at = 0\n";
const DENIED: &str = "[loop_guard]\nwarn_at = 0\nstop_at = 0\n";

/// A run that a process has.
struct Session {
    run: Run,
    of: (String, usize),
    used: BTreeSet<String>,
}

struct Attack {
    rig: Rig,
    seed: u64,
    state: u64,
    policy: &'static str,
    sessions: Vec<Session>,
    stopped: Vec<Job>,
    running: Vec<tokio::task::JoinHandle<()>>,
}

impl Attack {
    fn any(&mut self, below: usize) -> usize {
        // xorshift64
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below as u64).expect("small")
    }

    fn options((run, party): &(String, usize)) -> RunOptions {
        let (principal, tenant) = PARTIES[*party];
        RunOptions::new().run_id(run.as_str()).principal(principal).tenant(tenant)
    }

    /// A process, whose store may fail.
    fn process(&mut self) -> ToolRunner {
        let policy = match self.any(10) {
            0 => DENIED,
            1 => ASKED,
            _ => self.policy,
        };
        let plain: Arc<dyn Store> = Arc::clone(&self.rig.store) as _;
        if self.any(2) == 0 {
            return self.rig.process(plain, policy);
        }
        let chance = AtomicU64::new(self.any(usize::MAX) as u64 | 1);
        let hook = move |method: &'static str| {
            let next = |state: u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            let state = chance.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_default();
            let down = || StoreError::Unavailable("the disk is gone".into());
            match ((state >> 33) % 100, method) {
                (0..80, _) => HookAction::Pass,
                (80..92, _) => HookAction::Late,
                (92..96, _) => HookAction::Fail(down()),
                (_, "update" | "append") => HookAction::Lost(down()),
                _ => HookAction::Pass,
            }
        };
        self.rig.process(Arc::new(HookedStore::new(plain, hook)), policy)
    }

    fn session(&mut self) {
        let (run, party) = (self.any(2), self.any(8).saturating_sub(5));
        let of = (format!("run-{}-{run}", self.seed), party);
        let run = self.process().run(Self::options(&of));
        self.sessions.push(Session { run, of, used: BTreeSet::new() });
    }

    async fn moved(&mut self) {
        let at = self.any(self.sessions.len());
        let Ok(saved) = self.sessions[at].run.snapshot().await else { return };
        let (of, used) = (self.sessions[at].of.clone(), self.sessions[at].used.clone());
        // Sometimes as somebody else.
        let party = if self.any(8) == 0 { self.any(3) } else { of.1 };
        let text = serde_json::to_string(&saved).expect("a document");
        let saved = serde_json::from_str(&text).expect("a snapshot");
        let runner = self.process();
        if let Ok(run) = runner.restore(saved, Self::options(&(of.0.clone(), party))).await {
            assert_eq!(party, of.1, "seed {}: a run was restored for somebody else", self.seed);
            self.sessions.push(Session { run, of, used });
        }
    }

    fn exec(&mut self) -> Job {
        let at = self.any(self.sessions.len());
        let id = self.any(3);
        let number = if self.any(6) == 0 { 1 + self.any(6) } else { 1 + id };
        let number = u32::try_from(number).expect("small");
        let session = &mut self.sessions[at];
        let id = format!("c{id}");
        let (principal, tenant) = PARTIES[session.of.1];
        let of = (session.of.0.clone(), principal.to_owned(), tenant.to_owned(), id.clone(), number);
        // A caller that uses an id twice is told so.
        let is_new = session.used.insert(id.clone());
        let call = session.run.exec(ToolCall::text(id, "cut__keyed", format!(r#"{{"number":{number}}}"#)));
        Box::pin(async move {
            log(Happened::Begins(of.clone()));
            let result = call.await;
            let outcome = result.outcome();
            log(Happened::Note(format!("exec {of:?} ended as {outcome}")));
            let says_no = !result.executed() && !outcome.is_suspension() && outcome != Outcome::OutcomeUnknown;
            if says_no && outcome != Outcome::Ok && is_new {
                log(Happened::DidNotRun(of, outcome));
            }
        })
    }

    fn decide(&mut self) -> Job {
        let at = self.any(self.sessions.len());
        let id = format!("c{}", self.any(3));
        let (name, tenant) = DECIDERS[self.any(DECIDERS.len())];
        let decider = Decider::new(name).tenant(tenant);
        let decision = match self.any(9) {
            0 => ApprovalDecision::Deny(None),
            1 => ApprovalDecision::ApproveEdited(r#"{"number":9}"#.to_owned()),
            2 => ApprovalDecision::ApproveEdited(r#"{"number":"x"}"#.to_owned()),
            3 => ApprovalDecision::Respond("5".to_owned()),
            _ => ApprovalDecision::Approve,
        };
        let how = self.any(12);
        let Session { run, of: (run_id, party), .. } = &self.sessions[at];
        let (run, (principal, of_tenant)) = (run.clone(), PARTIES[*party]);
        let of = (run_id.clone(), principal.to_owned(), of_tenant.to_owned(), id.clone(), 0);
        Box::pin(async move {
            log(Happened::Begins(of));
            let note = format!("{how} {decision:?} of {} {id} {principal}", run.id());
            let ended = match how {
                0 => run.abandon(&id).await,
                1 => run.expire_shown(&id).await,
                2 => return drop(run.recorded(&CallId::new(&id)).await),
                _ => run.resume_shown(&id, decision, &decider).await,
            };
            let ended = ended.map_or_else(|error| error.code(), |result| result.outcome().code());
            log(Happened::Note(format!("{note} ended as {ended}")));
        })
    }

    /// A process continues, is stopped, is killed, or its caller goes away, at any point.
    async fn take(&mut self, mut job: Job) {
        for _ in 0..self.any(12) {
            if polled(1, job.as_mut()).await {
                return;
            }
        }
        let how = self.any(8);
        log(Happened::Note(format!("then {}", ["dropped", "killed", "stopped", "left alone"][how.min(3)])));
        match how {
            0 => drop(job),
            1 => std::mem::forget(job),
            2 => self.stopped.push(job),
            _ => self.running.push(tokio::spawn(job)),
        }
    }

    async fn step(&mut self) {
        match self.any(20) {
            0 => self.session(),
            1 => self.moved().await,
            2 => {
                log(Happened::Note("time passes".to_owned()));
                let time = Duration::from_secs(self.any(45) as u64);
                self.rig.clock.advance(time);
            }
            3 => {
                let back = jiff::SignedDuration::from_secs(i64::try_from(self.any(30)).expect("small"));
                let now = self.rig.clock.now().saturating_sub(back).expect("a time");
                self.rig.clock.set(now);
            }
            4 if !self.stopped.is_empty() => {
                let job = self.stopped.remove(0);
                self.running.push(tokio::spawn(job));
            }
            5 => {
                let at = self.any(self.sessions.len());
                self.sessions[at].run.cancel();
            }
            6..=13 => {
                let job = self.exec();
                self.take(job).await;
            }
            _ => {
                let job = self.decide();
                self.take(job).await;
            }
        }
        for _ in 0..self.any(4) {
            tokio::task::yield_now().await;
        }
    }

    /// Lets everything end that still can, and looks up every call.
    async fn settled(&mut self) {
        for job in std::mem::take(&mut self.stopped) {
            self.running.push(tokio::spawn(job));
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        for task in std::mem::take(&mut self.running) {
            // One that was killed may have had its turn to decide in the same process.
            task.abort();
            assert!(task.await.map_or_else(|error| !error.is_panic(), |()| true), "seed {}", self.seed);
        }
        settle().await;
        self.rig.clock.advance(Duration::from_hours(48));
        for run in 0..2 {
            for party in 0..3 {
                let of = (format!("run-{}-{run}", self.seed), party);
                let run = self.rig.process(Arc::clone(&self.rig.store) as _, self.policy).run(Self::options(&of));
                for id in 0..3 {
                    drop(run.recorded(&CallId::new(&format!("c{id}"))).await.expect("a store"));
                }
            }
        }
        settle().await;
    }

    async fn check(&self) {
        let seed = self.seed;
        let happened = std::mem::take(&mut *LOG.lock().unwrap());
        let mut effects: BTreeMap<&Of, usize> = BTreeMap::new();
        for (at, one) in happened.iter().enumerate() {
            if let Happened::TookEffect(of) = one {
                assert_eq!(effects.insert(of, at), None, "seed {seed}: {of:?} took effect twice");
            }
        }
        for (told, one) in happened.iter().enumerate() {
            let Happened::DidNotRun(of, outcome) = one else { continue };
            let Some(effect) = effects.get(of) else { continue };
            let again = |one: &Happened| match one {
                Happened::Begins(begun) => (&begun.0, &begun.1, &begun.2, &begun.3) == (&of.0, &of.1, &of.2, &of.3),
                _ => false,
            };
            let is_later = *effect > told && happened[told..*effect].iter().any(again);
            assert!(is_later, "seed {seed}: {of:?} took effect, and somebody was told {outcome}: {happened:#?}");
        }
        let records = self.rig.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(tool_runtime::store::Chain::verify(&records), Ok(()), "seed {seed}");
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let of = |record: &ToolInvocationRecord| {
            let arguments = record.shown_arguments()?.get();
            let number = arguments.split("\"number\":").nth(1)?.trim_end_matches('}').parse().ok()?;
            let (principal, tenant) = (text(&record.principal), text(&record.tenant));
            Some((record.run_id.to_string(), principal, tenant, record.tool_call_id.to_string(), number))
        };
        let mut closed: BTreeMap<Of, Vec<&ToolInvocationRecord>> = BTreeMap::new();
        for record in records.iter().filter_map(|sealed| sealed.record.as_call()) {
            if let Some(of) = of(record) {
                closed.entry(of).or_default().push(record);
            }
        }
        for (of, records) in &closed {
            let outcomes: Vec<_> = records.iter().map(|record| (record.outcome, record.executed)).collect();
            let is_settled = |(outcome, executed): &(Outcome, bool)| {
                *executed || matches!(outcome, Outcome::Ok | Outcome::ApprovalDenied | Outcome::ApprovalExpired)
            };
            let settled = outcomes.iter().position(is_settled);
            assert!(
                settled.is_none_or(|at| at + 1 == outcomes.len()),
                "seed {seed}: {of:?} has records after the one that settled it: {outcomes:?}: {happened:#?}"
            );
            let has_effect = effects.contains_key(of);
            let is_told = |outcome| matches!(outcome, Outcome::Ok | Outcome::OutcomeUnknown);
            assert!(
                !has_effect || outcomes.last().is_some_and(|(outcome, _)| is_told(*outcome)),
                "seed {seed}: {of:?} took effect: {outcomes:?}: {happened:#?}"
            );
            let is_ok = outcomes.contains(&(Outcome::Ok, true));
            assert!(has_effect || !is_ok, "seed {seed}: {of:?} did not take effect: {outcomes:?}: {happened:#?}");
        }
        for of in effects.keys() {
            let same_id = |other: &&Of| (&other.0, &other.1, &other.2, &other.3) == (&of.0, &of.1, &of.2, &of.3);
            assert!(closed.keys().any(|other| same_id(&other)), "seed {seed}: {of:?} took effect and has no record");
        }
        if self.policy == ASKED {
            let decisions: Vec<_> = records.iter().filter_map(|sealed| sealed.record.as_decision()).collect();
            for (run, principal, tenant, id, _) in effects.keys() {
                let may = decisions.iter().filter(|decision| {
                    *decision.run_id == **run
                        && text(&decision.principal) == *principal
                        && text(&decision.tenant) == *tenant
                        && decision.call_id.as_str() == id
                        && decision.refused().is_none()
                        && matches!(decision.decision.code(), "approved" | "edited")
                });
                let by_others = may.filter(|decision| {
                    let decider = decision.decider.as_ref().expect("somebody decided");
                    decider.principal() != principal && decider.tenant_id() == Some(tenant)
                });
                assert!(by_others.count() > 0, "seed {seed}: nobody approved {run} {id} of {principal}: {happened:#?}");
            }
        }
    }
}

#[tokio::test]
async fn whatever_happens_each_effect_happens_once_and_nobody_is_told_otherwise() {
    let seeds: u64 = std::env::var("ANYTHING").map_or(200, |seeds| seeds.parse().expect("a number"));
    let first: u64 = std::env::var("ANYTHING_FROM").map_or(1, |seed| seed.parse().expect("a number"));
    let mut took_effect = 0;
    for seed in first..first + seeds {
        let policy = if seed % 2 == 0 { FREE } else { ASKED };
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let (rig, sessions, stopped, running) = (Rig::new(), Vec::new(), Vec::new(), Vec::new());
        let mut attack = Attack { rig, seed, state, policy, sessions, stopped, running };
        (0..3).for_each(|_| attack.session());
        for _ in 0..60 {
            attack.step().await;
        }
        attack.settled().await;
        took_effect += LOG.lock().unwrap().iter().filter(|one| matches!(one, Happened::TookEffect(_))).count();
        attack.check().await;
    }
    assert!(took_effect as u64 > seeds, "too little happens to show anything: {took_effect}");
}
