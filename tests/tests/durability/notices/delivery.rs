//! The delivery of notices: Standard Webhooks over a real connection, retries from the store, several processes.

use std::collections::BTreeSet;
use std::net::TcpListener;

use tests::server::{Reply, Server, WEBHOOK_SECRET as SECRET};
use tool_runtime::agent::http::Notifier;

use super::*;

const NEXT_SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Longer than every wait between two attempts.
const LONG: Duration = Duration::from_hours(24);

fn status(status: &str) -> Reply {
    Reply::body(status, "", b"")
}

fn receiver(replies: impl IntoIterator<Item = Reply>) -> Server {
    Server::start(replies).expect("a free port")
}

fn notifier(processes: &Processes, url: &str) -> Notifier {
    Notifier::new(Arc::clone(&processes.store) as _, url, [SECRET]).expect("a webhook")
}

/// A store with the notice of a call that waits.
async fn noticed(processes: &Processes) -> StoredNotice {
    drop(waits(processes, &format!("{POLICY}{ASKS}[notices]\n")).await);
    only(processes).await
}

async fn only(processes: &Processes) -> StoredNotice {
    let mut notices = notices(&*processes.store).await;
    assert_eq!(notices.len(), 1);
    notices.remove(0)
}

/// The attempts of a notice: their codes, each with the status.
fn attempts(notice: &StoredNotice) -> Vec<(Option<&str>, Option<u16>)> {
    notice.attempts().map(|(_, status, code)| (code, status)).collect()
}

#[tokio::test]
async fn a_notice_is_sent_once_with_the_headers_of_the_standard() {
    let (processes, server) = (processes(0), receiver([status("204 No Content")]));
    let notice = noticed(&processes).await;
    let notifier = notifier(&processes, &format!("{}/hook?x=1", server.url()));
    assert_eq!(notifier.send_due().await.expect("a store"), 1);
    processes.clock.advance(LONG);
    assert_eq!(notifier.send_due().await.expect("a store"), 0, "once");
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{}", asked[0].head);
    assert_eq!(asked[0].body, notice.payload());
    assert_eq!(asked[0].header("content-type"), "application/json");
    assert_eq!(asked[0].header("webhook-id"), &*notice.id);
    assert_eq!(asked[0].header("webhook-timestamp"), notice.created_at.as_second().to_string());
    let signature = asked[0].header("webhook-signature");
    assert!(signature.starts_with("v1,") && !signature.contains(' '), "{signature}");
    let sent = only(&processes).await;
    assert_eq!((sent.state(), sent.next, attempts(&sent)), ("delivered", None, vec![(None, Some(204))]));
}

/// While a receiver changes from one secret to the next, both sign. Each signature is that of its secret alone.
#[tokio::test]
async fn two_secrets_sign_during_a_rotation() {
    let (processes, server) = (processes(0), receiver([status("500 No")]));
    noticed(&processes).await;
    for secrets in [vec![SECRET, NEXT_SECRET], vec![SECRET], vec![NEXT_SECRET]] {
        let notifier = Notifier::new(Arc::clone(&processes.store) as _, &server.url(), secrets).expect("a webhook");
        only(&processes).await.retry(&*processes.store).await.expect("a store");
        notifier.send_due().await.expect("a store");
    }
    let asked = server.asked();
    let signatures: Vec<_> = asked.iter().map(|asked| asked.header("webhook-signature")).collect();
    assert_eq!(signatures[0], format!("{} {}", signatures[1], signatures[2]));
}

#[tokio::test]
async fn a_receiver_that_fails_gets_the_notice_again_with_its_id() {
    let loud = Reply::forever("x").with_status("500 Internal Server Error");
    let redirect = Reply::body("302 Found", "location: http://127.0.0.1:1/\r\n", b"");
    let server = receiver([status("503 Later"), redirect, loud, Reply::silence(), status("200 OK")]);
    let processes = processes(0);
    let notice = noticed(&processes).await;
    for sent in 1..=5 {
        // Each attempt is made by another process.
        let notifier = notifier(&processes, &server.url()).timeout(Duration::from_secs(if sent == 4 { 1 } else { 60 }));
        assert_eq!(notifier.send_due().await.expect("a store"), u64::from(sent == 5), "{sent}");
        assert_eq!(notifier.send_due().await.expect("a store"), 0, "it waits");
        processes.clock.advance(LONG);
    }
    let asked = server.asked();
    assert_eq!(asked.len(), 5, "no redirect is followed");
    let ids: BTreeSet<_> = asked.iter().map(|asked| asked.header("webhook-id")).collect();
    assert_eq!(ids, BTreeSet::from([&*notice.id]));
    let times: BTreeSet<_> = asked.iter().map(|asked| asked.header("webhook-timestamp")).collect();
    assert_eq!(times.len(), 5, "the time is that of the attempt");
    assert!(asked.iter().all(|asked| asked.body == notice.payload()));
    let delivered = only(&processes).await;
    let expected = [
        (Some("status"), Some(503)),
        (Some("redirect"), Some(302)),
        (Some("status"), Some(500)),
        (Some("timeout"), None),
        (None, Some(200)),
    ];
    assert_eq!((delivered.state(), attempts(&delivered)), ("delivered", expected.to_vec()));
}

/// The answer begins in time, and its status line comes too late. It counts as none.
#[tokio::test]
async fn a_success_that_comes_late_is_a_failure() {
    let late = Reply::recorded(*b"HTTP/1.1 ").and_hang();
    let (processes, server) = (processes(0), receiver([late]));
    noticed(&processes).await;
    let notifier = notifier(&processes, &server.url()).timeout(Duration::from_millis(50));
    assert_eq!(notifier.send_due().await.expect("a store"), 0);
    let waits = only(&processes).await;
    assert_eq!((waits.state(), attempts(&waits)), ("pending", vec![(Some("timeout"), None)]));
}

/// The waits grow; after the last attempt the notice is given up. A person can send it again.
#[tokio::test]
async fn a_webhook_that_is_down_is_given_up_after_ten_attempts() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("a port");
    let processes = processes(0);
    noticed(&processes).await;
    let notifier = notifier(&processes, &format!("http://{free}/"));
    let mut last = Duration::ZERO;
    for attempt in 1..=10 {
        assert_eq!(notifier.send_due().await.expect("a store"), 0);
        let notice = only(&processes).await;
        assert_eq!(attempts(&notice), vec![(Some("connect"), None); attempt]);
        if let Some(next) = notice.next {
            let wait = Duration::try_from(next.duration_since(notice.attempts().last().expect("it was sent").0))
                .expect("later");
            assert!(wait > last && wait <= LONG, "{attempt}: {wait:?} after {last:?}");
            last = wait / 2;
            processes.clock.advance(wait);
        }
    }
    let given_up = only(&processes).await;
    assert_eq!((given_up.state(), given_up.next), ("given_up", None));
    let server = receiver([status("200 OK")]);
    let notifier = self::notifier(&processes, &server.url());
    processes.clock.advance(LONG);
    assert_eq!(notifier.send_due().await.expect("a store"), 0);
    assert!(given_up.retry(&*processes.store).await.expect("a store"));
    assert_eq!(notifier.send_due().await.expect("a store"), 1);
    let sent = only(&processes).await;
    assert_eq!((sent.state(), sent.attempts().len()), ("delivered", 11));
}

#[tokio::test]
async fn a_receiver_can_ask_for_a_longer_wait() {
    let later = Reply::body("429 Too Many", "retry-after: 3600\r\n", b"");
    let (processes, server) = (processes(0), receiver([later, status("200 OK")]));
    noticed(&processes).await;
    let notifier = notifier(&processes, &server.url());
    notifier.send_due().await.expect("a store");
    processes.clock.advance(Duration::from_secs(3599));
    assert_eq!(notifier.send_due().await.expect("a store"), 0);
    processes.clock.advance(Duration::from_secs(1));
    assert_eq!(notifier.send_due().await.expect("a store"), 1);
}

/// Nothing is sent for an hour, and every notice keeps its attempts: in one process, and in processes that send once.
#[tokio::test]
async fn a_receiver_that_is_gone_gets_nothing_for_an_hour() {
    for is_one_process in [true, false] {
        let (processes, server) = (processes(1), receiver([status("410 Gone"), status("200 OK")]));
        let run = waits(&processes, &format!("{POLICY}{ASKS}[notices]\n")).await;
        let mut notifier = notifier(&processes, &server.url());
        assert_eq!(notifier.send_due().await.expect("a store"), 0);
        if is_one_process {
            run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
        } else {
            notifier = self::notifier(&processes, &server.url());
        }
        processes.clock.advance(Duration::from_mins(59));
        assert_eq!(notifier.send_due().await.expect("a store"), 0);
        assert_eq!(server.asked().len(), 1);
        processes.clock.advance(Duration::from_mins(1));
        let expected = if is_one_process { 2 } else { 1 };
        assert_eq!(notifier.send_due().await.expect("a store"), expected, "{is_one_process}");
        let states: Vec<_> = notices(&*processes.store).await.iter().map(StoredNotice::state).collect();
        assert_eq!(states, vec!["delivered"; states.len()]);
    }
}

/// A receiver that stays gone uses the attempts of a notice, one an hour at most.
#[tokio::test]
async fn a_receiver_that_stays_gone_is_given_up_after_ten_attempts() {
    let (processes, server) = (processes(0), receiver([status("410 Gone")]));
    noticed(&processes).await;
    for sent in 1..=10 {
        assert_eq!(only(&processes).await.state(), "pending");
        let notifier = notifier(&processes, &server.url());
        assert_eq!(notifier.send_due().await.expect("a store"), 0);
        assert_eq!(server.asked().len(), sent);
        processes.clock.advance(Duration::from_mins(59));
        assert_eq!(self::notifier(&processes, &server.url()).send_due().await.expect("a store"), 0);
        assert_eq!(server.asked().len(), sent, "it waits");
        processes.clock.advance(LONG);
    }
    let given_up = only(&processes).await;
    assert_eq!((given_up.state(), attempts(&given_up)), ("given_up", vec![(Some("gone"), Some(410)); 10]));
}

/// Two processes send the notices of one store at the same time. Each notice is sent once.
#[tokio::test]
async fn two_notifiers_share_the_notices() {
    const CALLS: usize = 40;
    let (processes, server) = (processes(0), receiver([status("200 OK")]));
    let run = runner(&processes, &format!("{POLICY}{ASKS}[notices]\n")).run(ada());
    for number in 0..CALLS {
        run.exec(ToolCall::text(format!("c{number}"), "notices__refund", ARGUMENTS)).await;
    }
    let [one, other] = [(); 2].map(|()| notifier(&processes, &server.url()));
    let (one, other) = tokio::join!(one.send_due(), other.send_due());
    assert_eq!(one.expect("a store") + other.expect("a store"), CALLS as u64);
    let asked = server.asked();
    let ids: BTreeSet<_> = asked.iter().map(|asked| asked.header("webhook-id")).collect();
    assert_eq!((asked.len(), ids.len()), (CALLS, CALLS));
}

/// Waits until the receiver has had this many requests.
async fn asked(server: &Server, times: usize) {
    while server.asked().len() < times {
        tokio::task::yield_now().await;
    }
}

/// A process dies while it sends for this time.
async fn dies(processes: &Processes, server: &Server, times: usize) {
    let doomed = notifier(processes, &server.url());
    let sending = tokio::spawn(async move { doomed.send_due().await });
    asked(server, times).await;
    sending.abort();
}

/// A process dies while it sends. Another one sends the notice once the lease is over. The next attempt after that
/// waits like one after a failure.
#[tokio::test]
async fn a_notice_of_a_process_that_died_is_sent_again() {
    let (processes, server) =
        (processes(0), receiver([Reply::silence(), Reply::silence(), Reply::silence(), status("200 OK")]));
    noticed(&processes).await;
    let next = notifier(&processes, &server.url());
    for (times, wait) in [(1, 45), (2, 5 * 60), (3, 30 * 60)] {
        dies(&processes, &server, times).await;
        assert_eq!(next.send_due().await.expect("a store"), 0, "the other process may still send it");
        assert!(!only(&processes).await.retry(&*processes.store).await.expect("a store"));
        processes.clock.advance(Duration::from_secs(wait - 1));
        assert_eq!(next.send_due().await.expect("a store"), 0, "{times}");
        processes.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(next.send_due().await.expect("a store"), 1);
    let interrupted = [(Some("interrupted"), None); 3];
    let expected = [&interrupted[..], &[(None, Some(200))]].concat();
    assert_eq!(attempts(&only(&processes).await), expected);
}

/// A notice that is tried is kept, even if its attempts take longer than a week.
#[tokio::test]
async fn the_sweep_keeps_a_notice_that_is_tried() {
    let later = Reply::body("429 Too Many", "retry-after: 86400\r\n", b"");
    let (processes, server) = (processes(0), receiver([later]));
    noticed(&processes).await;
    let (notifier, store): (_, &dyn Store) = (notifier(&processes, &server.url()), &*processes.store);
    for attempt in 1..=10 {
        store.sweep().await.expect("swept");
        assert_eq!(notifier.send_due().await.expect("a store"), 0);
        assert_eq!(only(&processes).await.attempts().len(), attempt);
        processes.clock.advance(LONG);
    }
    assert_eq!(only(&processes).await.state(), "given_up");
}

/// Notices that were delivered or given up stay for a week, and so do those that no process sends. A notifier removes
/// the former, too: a service without workers may have no sweep.
#[tokio::test]
async fn the_sweep_removes_what_is_over() {
    for (by_sweep, expected) in [(true, [2, 1, 0]), (false, [2, 1, 1])] {
        let (processes, server) = (processes(1), receiver([status("200 OK")]));
        let run = waits(&processes, &format!("{POLICY}{ASKS}[notices]\n")).await;
        let notifier = notifier(&processes, &server.url());
        notifier.send_due().await.expect("a store");
        processes.clock.advance(Duration::from_hours(1));
        run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
        let store: &dyn Store = &*processes.store;
        let mut left = Vec::new();
        for hours in [7 * 24 - 2, 1, 1] {
            processes.clock.advance(Duration::from_hours(hours));
            if by_sweep {
                store.sweep().await.expect("swept");
            } else {
                notifier.send_due().await.expect("a store");
            }
            left.push(notices(store).await.len());
        }
        assert_eq!(left, expected, "{by_sweep}");
    }
}

/// A notifier that runs together with a worker sends what comes, and ends when it is told.
#[tokio::test]
async fn a_notifier_runs_until_it_is_stopped() {
    let (processes, server) = (processes(0), receiver([status("200 OK")]));
    let notifier = notifier(&processes, &server.url());
    let works = async {
        noticed(&processes).await;
        asked(&server, 1).await;
    };
    notifier.run(works).await;
    assert_eq!(only(&processes).await.state(), "delivered");
}

#[test]
fn secrets_and_urls_are_in_no_message() {
    let new = |url: &str, secret: &str| Notifier::new(Arc::new(tool_runtime::store::MemoryStore::new()), url, [secret]);
    let shown = format!("{:?}", new("https://user:CANARY@app.example/CANARY", SECRET).expect("a webhook"));
    assert!(!shown.contains("CANARY") && !shown.contains("app.example") && !shown.contains(&SECRET[6..]), "{shown}");
    for (url, secret) in [
        ("http://user:CANARY@app.example/", SECRET),
        ("CANARY", SECRET),
        ("https://app.example/", "whsec_CANARY"),
        ("https://app.example/", "CANARY"),
    ] {
        let error = new(url, secret).expect_err("it is wrong");
        assert!(!error.to_string().contains("CANARY"), "{error}");
    }
}
