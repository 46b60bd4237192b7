//! Kills and stops processes that share a store while they work on its runs.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::json;
use tool_runtime::agent::{Agent, Input, RunQueue, SavedConversation};
use tool_runtime::call::Decider;
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::{Chain, Key, MemoryStore, RecordFilter, Store};
use tool_runtime::testing::ScriptedModel;
use tool_runtime::{
    Call, Outcome, Reconciled, RunOptions, ToolCatalog, ToolComponent, ToolContext, ToolError, ToolPolicy, ToolRunner,
    tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// The number of calls of a run.
pub const CALLS: usize = 5;
/// The lease of a worker's run.
pub const LEASE: Duration = Duration::from_secs(1);
/// The time for which a process is stopped: past its lease, and until another process has looked for runs without an
/// owner.
const STOPPED: Duration = Duration::from_millis(2500);
/// The tool that can look for its effect.
pub const KEYED: &str = "kills__keyed";
/// The tool that may be repeated.
pub const AGAIN: &str = "kills__again";
/// The tool whose effects have keys, which runs share.
pub const ONCE: &str = "kills__once";
/// The tool whose calls wait for a person. The last call of each run is never decided, and expires.
pub const ASKED: &str = "kills__asked";
/// Instead of a tool: the process decides on the calls that wait ([`decide`]).
pub const DECIDES: &str = "decides";
/// The number of processes that decide.
const DECIDERS: usize = 2;
/// How long a call waits for a decision. The last call of a run takes as long.
const EXPIRES: Duration = Duration::from_secs(4);
/// Instead of a tool: the calls of a run alternate between [`KEYED`], [`AGAIN`] and [`ONCE`].
pub const MIXED: &str = "mixed";
/// The number of open runs for each process. One process has places for all of them, so that the others can take over
/// the runs of a killed or stopped process.
const OPEN: usize = 4;
/// The number of runs that a process continues at a time.
pub const PLACES: usize = 16;
const POLICY: &str = r#"allowed_tools = ["kills__append", "kills__keyed", "kills__again", "kills__once", "kills__unledgered", "kills__asked"]
require_approval_for_tools = ["kills__asked"]
[loop_guard]
warn_at = 0
stop_at = 0
"#;

/// The file of effects, and the pause of a call before and after its effect.
static WORLD: OnceLock<(PathBuf, Duration)> = OnceLock::new();

/// Appends a line with the process, and waits until it is on the disk.
async fn happen(line: &str) -> Result<bool, ToolError> {
    let (path, pause) = WORLD.get().expect("set before anything runs");
    tokio::time::sleep(*pause).await;
    append_line(path, line)?;
    // Long enough to be killed between the effect and its record.
    tokio::time::sleep(*pause).await;
    Ok(true)
}

fn append_line(path: &Path, line: &str) -> Result<(), ToolError> {
    let line = format!("{line} {}\n", std::process::id());
    let written = OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        file.sync_data()
    });
    written.map_err(|_| ToolError::code("disk"))
}

/// Appends a line.
#[tool(name = "kills__append", effect = state_change, redact = ["$"])]
async fn append(
    /// The line.
    line: String,
) -> Result<bool, ToolError> {
    happen(&line).await
}

/// Appends a line, and can look for it.
#[tool(name = "kills__keyed", effect = state_change, redact = ["$"])]
struct Keyed {
    /// The line.
    line: String,
}

impl ToolComponent for Keyed {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), call: &Call<Self>) -> Result<bool, ToolError> {
        let (path, pause) = WORLD.get().expect("set before anything runs");
        tokio::time::sleep(*pause).await;
        let ledger = locked(path).await?;
        if refusal(path, call).exists() {
            return Err(ToolError::code("refused"));
        }
        append_line(path, &self.line)?;
        drop(ledger);
        tokio::time::sleep(*pause).await;
        Ok(true)
    }

    async fn reconcile(self, (): (), call: &Call<Self>) -> Result<Reconciled<bool>, ToolError> {
        let (path, _) = WORLD.get().expect("set before anything runs");
        let _ledger = locked(path).await?;
        let line = format!("{} ", self.line);
        if std::fs::read_to_string(path).unwrap_or_default().lines().any(|one| one.starts_with(&line)) {
            append_line(&path.with_file_name("found"), &self.line)?;
            return Ok(Reconciled::TookEffect(true));
        }
        std::fs::write(refusal(path, call), "").map_err(|_| ToolError::code("disk"))?;
        Ok(Reconciled::Prevented)
    }
}

/// The file whose existence means that the call's key is refused.
fn refusal(path: &Path, call: &ToolContext) -> PathBuf {
    path.with_file_name(format!("refused-{}", call.idempotency_key()))
}

/// Locks the file of effects for this process. A stopped process keeps the lock, and others wait; a killed one releases
/// it.
async fn locked(path: &Path) -> Result<File, ToolError> {
    let disk = |_| ToolError::code("disk");
    let file = OpenOptions::new().append(true).create(true).open(path.with_file_name("lock")).map_err(disk)?;
    while file.try_lock().is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(file)
}

/// Appends a line, and may do so again: the reader knows the key.
#[tool(name = "kills__again", effect = state_change, idempotent, redact = ["$"])]
async fn again(
    /// The line.
    line: String,
) -> Result<bool, ToolError> {
    happen(&line).await
}

/// Appends a line, once for each key.
#[tool(name = "kills__once", effect = state_change, once = "append:{key}", redact = ["$"])]
async fn once(
    /// The line.
    line: String,
    /// The key.
    key: String,
) -> Result<bool, ToolError> {
    drop(key);
    happen(&line).await
}

/// Appends a line, with a person's approval.
#[tool(name = "kills__asked", effect = state_change, redact = ["$"])]
async fn asked(
    /// The line.
    line: String,
) -> Result<bool, ToolError> {
    happen(&line).await
}

/// Approves the calls that wait, without end. Each decision is sent twice at the same time, and each of several
/// processes sends it.
///
/// # Panics
/// A decision gets an answer that does not fit.
pub async fn decide(store: Arc<dyn Store>) {
    let (path, _) = WORLD.get().expect("set before anything runs");
    let (queue, grace) = (RunQueue::new(&runner(Arc::clone(&store), DECIDES)), Decider::new("grace"));
    let last = format!("c{}", CALLS - 1);
    loop {
        // A stopped process may hold the lock of the SQLite file.
        let calls = store.pending_calls(&RecordFilter::default()).await.unwrap_or_default();
        for call in calls.into_iter().flatten().filter(|call| call.call_id.as_str() != last) {
            let (run, question) = (Arc::clone(&call.run_id), call.question());
            let decide = || queue.decide(&run, &question, ApprovalDecision::Approve, &grace);
            let (one, other) = tokio::join!(decide(), decide());
            for decided in [one, other] {
                let file = match decided {
                    Ok(None) => "accepted",
                    Err(ResumeError::NotWaiting(_)) => "refused",
                    Err(ResumeError::Store(_)) => continue,
                    other => panic!("{other:?}"),
                };
                append_line(&path.with_file_name(file), &format!("{run} {}", call.call_id)).expect("a file");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the tool of a call.
#[must_use]
pub fn tool_of<'t>(tool: &'t str, run: &str, call: usize) -> &'t str {
    if tool == MIXED { [KEYED, AGAIN, ONCE][(number(run) + call) % 3] } else { tool }
}

/// Returns the arguments of a call: its run and its id as the line, and for [`ONCE`] its key.
#[must_use]
pub fn arguments(tool: &str, run: &str, call: usize) -> String {
    let line = format!("{run} c{call}");
    let arguments = if tool == ONCE { json!({ "line": line, "key": key(run, call) }) } else { json!({ "line": line }) };
    arguments.to_string()
}

/// The key of a call, which eight runs share, and two calls of each run.
fn key(run: &str, call: usize) -> String {
    format!("{}-{}", number(run) / 8, call / 2)
}

/// The number of a run.
fn number(run: &str) -> usize {
    run.strip_prefix("run-").and_then(|number| number.parse().ok()).expect("a number")
}

/// Appends a line, but declares that it only reads, so the ledger has no entry of it.
#[tool(name = "kills__unledgered", effect = read_only, redact = ["$"])]
async fn unledgered(
    /// The line.
    line: String,
) -> Result<bool, ToolError> {
    happen(&line).await
}

/// Sets the file of effects, and the pause of a call before and after its effect.
///
/// # Panics
/// It was set before.
pub fn happens_in(effects: PathBuf, pause: Duration) {
    WORLD.set((effects, pause)).expect("once");
}

/// Creates the gate of every process: runs are enqueued and continued under the same policy.
///
/// # Panics
/// Never: the policy fits the tools.
#[must_use]
pub fn runner(store: Arc<dyn Store>, tool: &str) -> ToolRunner {
    let catalog = ToolCatalog::builder()
        .tool::<append>()
        .tool::<Keyed>()
        .tool::<again>()
        .tool::<once>()
        .tool::<unledgered>()
        .tool::<asked>()
        .build()
        .expect("a catalog");
    let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
    // With approvals, a call of an effect whose outcome is unknown would wait for a person as well.
    let builder =
        ToolRunner::builder(catalog, policy).approvals([ASKED, DECIDES].contains(&tool)).approval_ttl(EXPIRES);
    builder.store(store).build().expect("a runner")
}

/// Opens the store: a file, or the URL of a server.
///
/// # Panics
/// It cannot be opened.
pub async fn open(store: &str) -> Arc<dyn Store> {
    #[cfg(feature = "postgres")]
    if store.starts_with("postgres:") {
        return Arc::new(SqlStore::postgres(store, SqlOptions::new()).await.expect("the server is there"));
    }
    Arc::new(SqlStore::sqlite(store, SqlOptions::new()).await.expect("the file opens"))
}

/// The parameters of a test.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program of a worker.
    pub program: &'static str,
    /// The number of processes.
    pub processes: usize,
    /// The minimum number of runs: more are enqueued until all disturbances have taken place.
    pub runs: usize,
    /// The number of disturbances, half of them `SIGKILL`, half `SIGSTOP` past the lease.
    pub disturbances: usize,
    /// The pause of a call before and after its effect.
    pub pause: Duration,
    /// The tool that the runs call, or [`MIXED`].
    pub tool: &'static str,
}

impl Plan {
    /// Creates a plan. The variables `KILLS_RUNS` and `KILLS_DISTURBANCES` override its numbers.
    #[must_use]
    pub fn new(program: &'static str, processes: usize) -> Self {
        let number = |name: &str, usual| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
        Self {
            program,
            processes,
            runs: number("KILLS_RUNS", 20),
            disturbances: number("KILLS_DISTURBANCES", 14),
            pause: Duration::from_millis(60),
            tool: "kills__append",
        }
    }
}

/// The results of a test.
#[derive(Debug, Default)]
pub struct Figures {
    /// Runs that were answered.
    pub runs: usize,
    /// Processes that were killed.
    pub killed: usize,
    /// Processes that were stopped past their leases.
    pub stopped: usize,
    /// Processes that were stopped in a call, and whose run another process took over meanwhile.
    pub taken_over: usize,
    /// Records of calls.
    pub records: usize,
    /// Calls that ended as `outcome_unknown`.
    pub unknown: usize,
    /// Calls whose effect `reconcile` found.
    pub reconciled: usize,
    /// Calls of [`AGAIN`] that took effect twice or more.
    pub repeated: usize,
    /// Calls that ended as cancelled: `reconcile` prevented them, or an earlier call with their key still ran.
    pub prevented: usize,
    /// Calls with an unknown outcome that took effect.
    pub unknown_took_effect: usize,
    /// Effects that took place twice or more: of a call that may not be repeated, or of a key.
    pub twice: usize,
    /// Calls that got the result of an earlier call with their key.
    pub delivered: usize,
    /// Calls that were decided twice: two decisions on one question were accepted, or recorded as carried out.
    pub decided_twice: usize,
    /// Decisions that were refused, because the call had been decided.
    pub refused: usize,
    /// Processes that decide and were killed.
    pub killed_deciders: usize,
    /// Calls that expired without a decision.
    pub expired: usize,
    /// Other violations that the check found.
    pub wrong: Vec<String>,
    /// The duration of the test.
    pub seconds: u64,
}

struct Workers<'p> {
    plan: &'p Plan,
    store: &'p str,
    effects: &'p Path,
    children: Vec<Option<Child>>,
    deciders: Vec<Child>,
    taken_over: usize,
    /// The stopped processes: since when, the run of the call in which each was stopped, and that run's epoch at the
    /// time.
    stopped: HashMap<usize, (Instant, Option<(String, u64)>)>,
}

impl Workers<'_> {
    fn start(&mut self, at: usize) {
        self.children[at] = Some(self.started(self.plan.tool));
    }

    fn started(&self, tool: &str) -> Child {
        let pause = self.plan.pause.as_millis().to_string();
        let mut command = Command::new(self.plan.program);
        command.arg(self.store).arg(self.effects).arg(pause).arg(tool);
        command.stdin(Stdio::null()).spawn().expect("the program starts")
    }

    /// Kills a process that decides, if there is one, and starts another. Returns how many were killed.
    fn replace_decider(&mut self) -> usize {
        let at = any(self.deciders.len());
        if self.deciders.is_empty() {
            return 0;
        }
        end(self.deciders.swap_remove(at));
        self.deciders.push(self.started(DECIDES));
        1
    }

    fn signal(&self, at: usize, signal: &str) {
        if let Some(Some(child)) = self.children.get(at) {
            let sent = Command::new("kill").arg(signal).arg(child.id().to_string()).status();
            assert!(sent.expect("kill runs").success(), "the process is there");
        }
    }

    /// The first tool without evidence of an interrupted call: a reconciled call of [`KEYED`], a repeated call of
    /// [`AGAIN`], or for any other tool a call that was killed before its record.
    fn unshown(&self, is_cut: bool) -> Option<&'static str> {
        let lines = std::fs::read_to_string(self.effects).unwrap_or_default();
        let mut tools = if self.plan.tool == MIXED { vec![KEYED, AGAIN, ONCE] } else { vec![self.plan.tool] };
        tools.retain(|tool| match *tool {
            KEYED => found(self.effects) == 0,
            AGAIN => repeated(self.plan.tool, &happened(&lines)) == 0,
            _ => !is_cut,
        });
        tools.first().copied()
    }

    /// The processes that are not stopped.
    fn running(&self) -> Vec<usize> {
        (0..self.plan.processes).filter(|at| !self.stopped.contains_key(at)).collect()
    }

    /// Waits for the next effect (of this tool, if one is given), and returns its process, its run and its call: that
    /// process is then between the effect and the record. `None` after a second without such an effect.
    async fn in_a_call(&self, wanted: Option<&str>) -> Option<(usize, String, usize)> {
        let written = || std::fs::read_to_string(self.effects).unwrap_or_default();
        let before = written().len();
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let now = written();
            for line in now[before..].lines().rev() {
                let [run, call, process] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
                let Some(call) = call.strip_prefix('c').and_then(|call| call.parse().ok()) else { continue };
                if wanted.is_some_and(|tool| tool != tool_of(self.plan.tool, run, call)) {
                    continue;
                }
                let is_it = |at: &usize| self.children[*at].as_ref().is_some_and(|it| it.id().to_string() == process);
                if let Some(at) = self.running().into_iter().find(is_it) {
                    return Some((at, run.to_owned(), call));
                }
            }
        }
        None
    }

    /// Stops a process past its lease.
    async fn stop(&mut self, store: &dyn Store, at: usize, run: Option<String>) {
        self.signal(at, "-STOP");
        let taken = match run {
            Some(run) => Some((run.clone(), taken(store, &run).await)),
            None => None,
        };
        self.stopped.insert(at, (Instant::now(), taken));
    }

    /// Continues the processes that were stopped for long enough. Counts those whose run another process took over.
    async fn wake(&mut self, store: &dyn Store, all: bool) {
        for at in 0..self.plan.processes {
            let Some((since, taken_before)) = self.stopped.get(&at) else { continue };
            let is_taken = match taken_before {
                Some((run, before)) => taken(store, run).await > *before,
                None => false,
            };
            // A process that holds the lock of the SQLite file prevents every takeover, so it must be continued in the
            // end. Until the first takeover, wait longer for a process without that lock.
            let patience = if self.taken_over == 0 && !is_taken { 4 * STOPPED } else { STOPPED };
            if all || since.elapsed() >= patience {
                self.stopped.remove(&at);
                self.taken_over += usize::from(is_taken);
                self.signal(at, "-CONT");
            }
        }
    }

    fn kill(&mut self, at: usize) {
        self.stopped.remove(&at);
        self.children.get_mut(at).and_then(Option::take).into_iter().for_each(end);
    }
}

fn end(mut child: Child) {
    child.kill().expect("it is ours");
    child.wait().expect("it is gone");
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        self.deciders.drain(..).for_each(end);
        (0..self.children.len()).for_each(|at| self.kill(at));
    }
}

/// Enqueues runs, disturbs the processes that work on them, and checks the effects and the records.
///
/// # Panics
/// Something does not start.
pub async fn disturb(plan: &Plan, store: &str, folder: &Path) -> Figures {
    let (began, effects) = (Instant::now(), folder.join("effects"));
    let opened = open(store).await;
    let queue = crate::queue(Arc::clone(&opened));
    let mut workers = Workers {
        plan,
        store,
        effects: &effects,
        children: (0..plan.processes).map(|_| None).collect(),
        deciders: Vec::new(),
        taken_over: 0,
        stopped: HashMap::new(),
    };
    (0..plan.processes).for_each(|at| workers.start(at));
    if plan.tool == ASKED {
        workers.deciders = (0..DECIDERS).map(|_| workers.started(DECIDES)).collect();
    }
    let (mut figures, mut open, mut all) = (Figures::default(), Vec::new(), Vec::new());
    let mut is_cut = false;
    loop {
        let done = figures.killed + figures.stopped;
        // On a slow machine, more disturbances may be necessary until one interrupts a call of each tool and a run is
        // taken over. With one effect for many runs, few processes are stopped in a call.
        let is_enough_taken = workers.taken_over > 0 || plan.tool == ONCE;
        let unshown = workers.unshown(is_cut);
        let enough = done >= plan.disturbances && is_enough_taken && unshown.is_none();
        assert!(done < 50 * plan.disturbances, "{figures:?}: {} runs taken over, {unshown:?}", workers.taken_over);
        if enough && all.len() >= plan.runs && open.is_empty() {
            break;
        }
        if open.is_empty() {
            for (id, saved) in saved(OPEN * plan.processes, all.len()).await {
                // A stopped process may hold the lock of the SQLite file. The write failed as a whole, so it is
                // repeated.
                while let Err(error) = queue.enqueue(&saved).await {
                    assert_eq!(error.code(), "store_locked", "it is new");
                    workers.wake(&*opened, false).await;
                }
                open.push(id);
            }
            all.extend(open.clone());
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        workers.wake(&*opened, false).await;
        let running = workers.running();
        // Stops a process only if another one keeps running, which can take over its runs. The last runs of a batch are
        // not disturbed: stopped processes would queue for the lock of the one that is left, and each kill would hit
        // its owner.
        if !enough && open.len() > plan.processes && (done.is_multiple_of(2) || running.len() > 1) {
            // Half of the kills come at a random time, all other disturbances between an effect and its record.
            let found = if done % 4 == 2 { None } else { workers.in_a_call(unshown).await };
            let at = found.as_ref().map_or_else(|| running[any(running.len())], |(at, ..)| *at);
            figures.killed_deciders += workers.replace_decider();
            if done.is_multiple_of(2) {
                workers.kill(at);
                if let Some((_, run, call)) = found.filter(|(_, run, call)| ends_unknown(plan.tool, run, *call)) {
                    is_cut |= !has_record(&*opened, &run, call).await;
                }
                workers.start(at);
                figures.killed += 1;
            } else {
                workers.stop(&*opened, at, found.map(|(_, run, _)| run)).await;
                figures.stopped += 1;
            }
        }
        let mut left = Vec::new();
        for run in open {
            let (stored, _) = queue.find(&run, None).await.expect("it is there");
            if &*stored.state != "answered" {
                left.push(run);
            }
        }
        open = left;
    }
    workers.wake(&*opened, true).await;
    // A process that was stopped in the middle of a call may still take effect.
    tokio::time::sleep(plan.pause * 3 + LEASE).await;
    figures.taken_over = workers.taken_over;
    drop(workers);
    check(&*opened, plan.tool, &all, &effects, &mut figures).await;
    figures.seconds = began.elapsed().as_secs();
    figures
}

/// Whether a call of this tool can be neither reconciled nor repeated.
fn ends_unknown(tool: &str, run: &str, call: usize) -> bool {
    ![KEYED, AGAIN].contains(&tool_of(tool, run, call))
}

/// Whether a call has a record.
async fn has_record(store: &dyn Store, run: &str, call: usize) -> bool {
    let records = store.calls(&RecordFilter::run(run)).await.expect("records");
    records.iter().any(|record| record.tool_call_id.as_str() == format!("c{call}"))
}

/// How many times each call took effect.
fn happened(lines: &str) -> HashMap<(&str, usize), usize> {
    let mut happened = HashMap::new();
    for line in lines.lines() {
        let (call, _process) = line.rsplit_once(' ').expect("run, call, process");
        let (run, call) = call.split_once(" c").expect("run, call");
        *happened.entry((run, call.parse().expect("a number"))).or_default() += 1;
    }
    happened
}

/// The number of calls that may be repeated, and were.
fn repeated(tool: &str, happened: &HashMap<(&str, usize), usize>) -> usize {
    happened.iter().filter(|((run, call), times)| **times > 1 && tool_of(tool, run, *call) == AGAIN).count()
}

/// The number of calls whose effect `reconcile` found.
fn found(effects: &Path) -> usize {
    let lines = std::fs::read_to_string(effects.with_file_name("found")).unwrap_or_default();
    happened(&lines).len()
}

/// The epoch of a run: how many times processes have taken it.
async fn taken(store: &dyn Store, run: &str) -> u64 {
    let documents = store.read(&[Key::run(run)]).await.expect("it reads");
    let [Some(document)] = documents.as_slice() else { panic!("one document") };
    crate::stored::json_of(document)["run"]["epoch"].as_u64().expect("it is there")
}

/// A random number below `below`.
fn any(below: usize) -> usize {
    let random = RandomState::new().build_hasher().finish();
    usize::try_from(random % below.max(1) as u64).unwrap_or(0)
}

/// Creates conversations to enqueue, with the ids of their runs.
async fn saved(runs: usize, first: usize) -> Vec<(String, SavedConversation)> {
    let runner = runner(Arc::new(MemoryStore::new()), ASKED);
    let agent = Agent::new(ScriptedModel::new([]));
    let mut saved = Vec::new();
    for number in first..first + runs {
        let id = format!("run-{number}");
        let mut conversation = agent.converse(runner.run(RunOptions::new().run_id(id.as_str())));
        conversation.accept(Input::from(id.as_str())).await.expect("a message");
        saved.push((id, conversation.save().await.expect("saved")));
    }
    saved
}

async fn check(store: &dyn Store, tool: &str, runs: &[String], effects: &Path, figures: &mut Figures) {
    let lines = std::fs::read_to_string(effects).unwrap_or_default();
    let happened = happened(&lines);
    let file = |name: &str| std::fs::read_to_string(effects.with_file_name(name)).unwrap_or_default();
    let (accepted, refused) = (file("accepted"), file("refused"));
    let accepted = self::happened(&accepted);
    figures.refused = refused.lines().count();
    let mut of_keys: HashMap<String, usize> = HashMap::new();
    for ((run, call), times) in &happened {
        match tool_of(tool, run, *call) {
            AGAIN => {}
            ONCE => *of_keys.entry(key(run, *call)).or_default() += times,
            _ => figures.twice += usize::from(*times > 1),
        }
    }
    figures.twice += of_keys.values().filter(|times| **times > 1).count();
    (figures.repeated, figures.reconciled) = (repeated(tool, &happened), found(effects));
    for run in runs {
        let sealed = store.records(&RecordFilter::run(run.as_str())).await.expect("records");
        if let Err(error) = Chain::verify(&sealed) {
            figures.wrong.push(format!("{run}: {error}"));
        }
        let decisions: Vec<_> = sealed.iter().filter_map(|sealed| sealed.record.as_decision()).collect();
        let records = store.calls(&RecordFilter::run(run.as_str())).await.expect("records");
        for number in 0..CALLS {
            let (call, tool) = (format!("c{number}"), tool_of(tool, run, number));
            let times = happened.get(&(run.as_str(), number)).copied().unwrap_or(0);
            let carried_out = decisions.iter().filter(|one| one.call_id.as_str() == call && one.refused().is_none());
            let is_accepted_twice = accepted.get(&(run.as_str(), number)).is_some_and(|times| *times > 1);
            if is_accepted_twice || carried_out.clone().count() > 1 {
                let carried_out: Vec<_> = carried_out.map(|one| one.decision.code()).collect();
                let detail = format!("accepted twice: {is_accepted_twice}, carried out: {carried_out:?}");
                figures.wrong.push(format!("{run} {call} of {tool} was decided twice: {detail}"));
                figures.decided_twice += 1;
            }
            let outcomes: Vec<_> =
                records.iter().filter(|one| one.tool_call_id.as_str() == call).map(|one| one.outcome).collect();
            match (outcomes.as_slice(), times) {
                ([Outcome::Ok], 1..) => {}
                ([Outcome::Ok], 0) if tool == ONCE && of_keys.contains_key(&key(run, number)) => figures.delivered += 1,
                ([Outcome::Cancelled], 0) => figures.prevented += 1,
                ([Outcome::ApprovalExpired], 0) if tool == ASKED => figures.expired += 1,
                ([Outcome::OutcomeUnknown], _) if tool != KEYED && tool != AGAIN => {
                    figures.unknown += 1;
                    figures.unknown_took_effect += times.min(1);
                }
                _ => figures.wrong.push(format!("{run} {call} of {tool}: {outcomes:?}, took effect {times} times")),
            }
        }
        figures.records += records.len();
        figures.runs += 1;
    }
}
