//! Processes that share one store are killed and stopped: nothing happens twice, and every call has its one record.
//!
//! `KILLS_RUNS=100 KILLS_DISTURBANCES=200 cargo test -p tests --features postgres --test kills -- --nocapture` is the
//! whole test. Without the variables, a small part of it runs.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test says what it expects")]

use tests::kills::{AGAIN, ASKED, CALLS, Figures, KEYED, ONCE, Plan, disturb};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shared-worker");

#[track_caller]
fn recorded(figures: &Figures) {
    eprintln!("{figures:#?}");
    assert_eq!(figures.wrong, Vec::<String>::new());
    assert_eq!(figures.records, figures.runs * CALLS, "one record for each call");
}

#[track_caller]
fn holds(figures: &Figures) {
    recorded(figures);
    assert_eq!(figures.twice, 0, "a call took effect twice");
    assert_eq!(figures.prevented, 0, "a call was kept from an effect that no other call had");
    assert!(figures.unknown > 0, "no call was cut short, so nothing was shown");
    assert!(figures.taken_over > 0, "no run of a stopped process was taken over, so nothing was shown");
}

/// Disturbs processes over one SQLite file.
async fn on_a_file(plan: &Plan) -> Figures {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.db");
    disturb(plan, store.to_str().expect("a path"), folder.path()).await
}

#[tokio::test]
async fn killed_processes_on_one_file_repeat_no_effect() {
    let figures = on_a_file(&Plan::new(PROGRAM, 2)).await;
    holds(&figures);
}

/// A call that can be reconciled or repeated never ends unknown, wherever its process is killed or stopped.
#[tokio::test]
async fn calls_that_can_be_reconciled_or_repeated_never_end_unknown() {
    for tool in [KEYED, AGAIN] {
        let usual = Plan::new(PROGRAM, 2);
        let plan = Plan { tool, disturbances: usual.disturbances / 2, runs: usual.runs / 2, ..usual };
        let figures = on_a_file(&plan).await;
        recorded(&figures);
        assert_eq!(figures.unknown, 0, "{tool}");
        assert_eq!(figures.twice, 0, "a call took effect twice");
        assert!(figures.taken_over > 0, "no run was taken over, so nothing was shown");
        let shown = if tool == AGAIN { figures.repeated } else { figures.reconciled };
        assert!(shown > 0, "no call of {tool} was cut short, so nothing was shown");
    }
}

/// Runs that want the same effect have it once, whichever process is killed or stopped while it has the key.
#[tokio::test]
async fn an_effect_key_holds_over_runs() {
    let figures = on_a_file(&Plan { tool: ONCE, ..Plan::new(PROGRAM, 2) }).await;
    recorded(&figures);
    assert_eq!(figures.twice, 0, "two calls with one key took effect");
    assert!(figures.delivered > 0, "no call got the result of an earlier one, so nothing was shown");
    assert!(figures.unknown > 0, "no call was cut short, so nothing was shown");
}

#[track_caller]
fn decides_once(figures: &Figures) {
    holds(figures);
    assert_eq!(figures.decided_twice, 0, "a call was decided twice");
    assert!(figures.refused > 0 && figures.killed_deciders > 0, "no decision came late, so nothing was shown");
    assert!(figures.expired > 0, "no call expired");
}

/// Decisions come twice, from processes that are killed as well.
#[tokio::test]
async fn a_call_that_waits_is_decided_once() {
    let figures = on_a_file(&Plan { tool: ASKED, ..Plan::new(PROGRAM, 2) }).await;
    decides_once(&figures);
}

/// The check can fail: it does with a tool that does not use the ledger.
#[tokio::test]
async fn without_the_ledger_calls_happen_twice() {
    let figures = on_a_file(&Plan { tool: "kills__unledgered", ..Plan::new(PROGRAM, 2) }).await;
    eprintln!("{figures:#?}");
    assert!(figures.twice > 0, "{figures:?}");
}

/// Disturbs processes over one PostgreSQL server.
#[cfg(feature = "postgres")]
async fn on_a_server(plan: &Plan) -> Figures {
    let server = tests::postgres::Postgres::start();
    let folder = tempfile::tempdir().expect("a folder");
    disturb(plan, &server.url("kills"), folder.path()).await
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn killed_processes_on_one_server_repeat_no_effect() {
    let figures = on_a_server(&Plan::new(PROGRAM, 3)).await;
    holds(&figures);
}

/// The same for calls that can be reconciled, may be repeated, or have an effect key: in one run, in turn.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn killed_processes_on_one_server_reconcile_repeat_and_keep_keys() {
    let figures = on_a_server(&Plan { tool: tests::kills::MIXED, ..Plan::new(PROGRAM, 3) }).await;
    recorded(&figures);
    assert_eq!(figures.twice, 0, "a call took effect twice, or two calls with one key");
    assert!(figures.reconciled > 0 && figures.repeated > 0, "no call of these tools was cut short");
    assert!(figures.unknown > 0 && figures.delivered > 0, "no call with a key was cut short, or none was delivered");
    assert!(figures.taken_over > 0, "no run of a stopped process was taken over, so nothing was shown");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_call_that_waits_on_one_server_is_decided_once() {
    let figures = on_a_server(&Plan { tool: ASKED, ..Plan::new(PROGRAM, 3) }).await;
    decides_once(&figures);
}
