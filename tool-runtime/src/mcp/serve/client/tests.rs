//! Tests which messages of a call are sent, and when.

use super::*;

fn reports() -> (Arc<Queue>, Reports) {
    let queue = Arc::<Queue>::default();
    let token = Some(ProgressToken(rmcp::model::NumberOrString::Number(1)));
    (Arc::clone(&queue), Reports { queue, token, wanted: None, application: None })
}

/// Returns the messages that can be sent now.
async fn sent(queue: &Queue) -> Vec<(f64, Option<f64>)> {
    let mut sent = Vec::new();
    while let Ok(Some(Message::Report { done, total, .. })) =
        tokio::time::timeout(Duration::from_millis(1), queue.next()).await
    {
        sent.push((done, total));
    }
    sent
}

#[tokio::test(start_paused = true)]
async fn reports_grow_and_keep_a_distance() {
    let (queue, reports) = reports();
    reports.report(1.0, Some(10.0));
    for done in [2.0, 3.0, 2.5] {
        reports.report(done, Some(10.0));
    }
    assert_eq!(sent(&queue).await, [(1.0, Some(10.0))], "the others came too early");
    tokio::time::advance(REPORTS).await;
    for done in [f64::NAN, f64::INFINITY, 3.0, 1.0] {
        reports.report(done, None);
    }
    assert_eq!(sent(&queue).await, [], "none of them is more than the last");
    reports.report(4.0, Some(f64::NAN));
    reports.report(5.0, None);
    assert_eq!(sent(&queue).await, [(4.0, None)]);
    // The last report is sent before the answer, no matter how early it is, and none after it.
    queue.close();
    reports.report(6.0, None);
    assert_eq!(sent(&queue).await, [(5.0, None)]);
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_reports_are_few_messages() {
    let (queue, reports) = reports();
    for done in 0..1000_u32 {
        reports.report(done.into(), None);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    queue.close();
    let sent = sent(&queue).await;
    assert!(sent.len() <= 51 && sent.last() == Some(&(999.0, None)), "{sent:?}");
}

#[tokio::test]
async fn lines_are_those_that_the_client_wants_and_are_bounded() {
    for (wanted, expected) in [
        (
            LoggingLevel::Debug,
            vec![LoggingLevel::Error, LoggingLevel::Warning, LoggingLevel::Info, LoggingLevel::Debug],
        ),
        (LoggingLevel::Notice, vec![LoggingLevel::Error, LoggingLevel::Warning]),
        (LoggingLevel::Error, vec![LoggingLevel::Error]),
        (LoggingLevel::Emergency, Vec::new()),
    ] {
        let queue = Arc::<Queue>::default();
        let lines = Reports { queue: Arc::clone(&queue), token: None, wanted: Some(rank(wanted)), application: None };
        lines.report(1.0, None);
        for level in [tracing::Level::ERROR, tracing::Level::WARN, tracing::Level::INFO, tracing::Level::DEBUG] {
            lines.notice(level, "a line");
        }
        queue.close();
        let mut said = Vec::new();
        while let Some(Message::Line { level, .. }) = queue.next().await {
            said.push(level);
        }
        assert_eq!(said, expected, "{wanted:?}");
    }
    let queue = Arc::<Queue>::default();
    let lines = Reports { queue: Arc::clone(&queue), token: None, wanted: Some(0), application: None };
    (0..1000).for_each(|_| lines.notice(tracing::Level::INFO, "a line"));
    queue.close();
    let mut count = 0;
    while queue.next().await.is_some() {
        count += 1;
    }
    assert_eq!(count, WAITING);
}
