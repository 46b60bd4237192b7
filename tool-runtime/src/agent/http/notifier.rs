//! [`Notifier`]: delivers notices about tool calls to a webhook.

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use reqwest::{Client, Url};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::http::retry::{self, Again};
use crate::agent::http::signing::SigningKeys;
use crate::agent::http::{endpoint, tls};
use crate::error::ParseError;
use crate::store::ledger::after;
use crate::store::notices::{self, Tried, WAITS};
use crate::store::pages::Search;
use crate::store::transact;
use crate::store::{
    Document, DocumentKind, Finding, Key, NoticeAttempt, Query, Store, StoreError, StoredDocument, StoredNotice,
    Transaction, remove_over,
};
use crate::text::random_id;

/// How many notices are sent at the same time.
const AT_ONCE: usize = 8;

/// The pause between two searches for due notices.
const POLL: Duration = Duration::from_secs(1);

/// The time to record the result of an attempt. The lease of a notice is longer than the attempt's time limit by this.
const MARGIN: Duration = Duration::from_secs(30);

/// The longest time limit of an attempt.
const LONGEST_LIMIT: Duration = Duration::from_secs(3600);

/// The pause after the receiver answered with the status 410 (gone).
const PAUSE: Duration = Duration::from_secs(3600);

/// The longest wait that a receiver can ask for with `retry-after`.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The maximum number of unreadable notices that are reported.
const MOST_REPORTED: usize = 1024;

/// Sends the notices of a store ([`StoredNotice`]) to a webhook, with the headers and signatures of [Standard
/// Webhooks](https://www.standardwebhooks.com/).
///
/// A notice reports a change of a call; the policy's table `notices` enables notices. The notifier sends each notice
/// until the receiver answers with a 2xx status in time, at most ten times. The waits between the attempts grow;
/// together they take between 38 and 76 hours. A receiver can extend each wait with `retry-after`, up to 24 hours. A
/// receiver can get a notice more than once, always with the same `webhook-id`. Several processes can send the notices
/// of one store; only one of them at a time sends a notice. Redirects are not followed, and bodies of answers are not
/// read. After the status 410, this notifier begins no attempt for an hour.
///
/// ```no_run
/// use std::sync::Arc;
/// use tool_runtime::agent::http::Notifier;
/// use tool_runtime::store::{MemoryStore, Store};
///
/// # async fn serve(store: Arc<dyn Store>, secret: String, shutdown: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
/// let notifier = Notifier::new(store, "https://app.example/webhooks/approvals", [secret])?;
/// notifier.run(shutdown).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Notifier {
    endpoint: Arc<Endpoint>,
    timeout: Duration,
}

struct Endpoint {
    store: Arc<dyn Store>,
    client: Client,
    url: Url,
    keys: SigningKeys,
    /// When the receiver last answered with the status 410, by the store's time.
    gone_at: Mutex<Option<Timestamp>>,
    /// The positions of the notices that cannot be read and were reported.
    reported: Mutex<BTreeSet<u64>>,
}

impl Notifier {
    /// Creates a notifier for a receiver. A secret is `whsec_` followed by 24 to 64 bytes in base64. Each secret signs
    /// every notice, so that a receiver can change from an old secret to a new one.
    ///
    /// # Errors
    /// The URL does not begin with `https://` (a loopback address may have `http://`), there are no secrets or more
    /// than 8, a secret does not have the form of Standard Webhooks, or no HTTP client can be created. The message
    /// contains neither the URL nor a secret.
    pub fn new(
        store: Arc<dyn Store>,
        url: &str,
        secrets: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, ParseError> {
        let url = Url::parse(url).ok().filter(is_confidential).ok_or(ParseError::new(
            "not_a_webhook_url",
            "the URL of a webhook begins with `https://`; only a loopback address may have `http://`",
        ))?;
        let keys = SigningKeys::read(secrets)?;
        let client = tls::client(&[])
            .ok()
            .and_then(|builder| builder.build().ok())
            .ok_or(ParseError::new("no_http_client", "this process cannot make an HTTP client"))?;
        let endpoint = Endpoint { store, client, url, keys, gone_at: Mutex::default(), reported: Mutex::default() };
        Ok(Self { endpoint: Arc::new(endpoint), timeout: Duration::from_secs(15) })
    }

    /// Sets the time limit of an attempt, from the connection to the status of the answer: 15 seconds by default, an
    /// hour at most. A later answer does not count.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(LONGEST_LIMIT);
        self
    }

    /// Sends notices until `stop` resolves; then finishes the attempts that have begun. While the store cannot be
    /// reached, the notifier tries again every second.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let (mut stop, stopping) = (pin!(stop), CancellationToken::new());
        while !stopping.is_cancelled() {
            let mut round = pin!(async {
                if let Err(error) = self.send(&stopping).await {
                    tracing::warn!(error = error.code(), "the notices of the store cannot be sent");
                }
                stopping.run_until_cancelled(sleep(POLL)).await;
            });
            poll_fn(|context| {
                if !stopping.is_cancelled() && stop.as_mut().poll(context).is_ready() {
                    stopping.cancel();
                }
                round.as_mut().poll(context)
            })
            .await;
        }
    }

    /// Sends every notice that is due now, once, and returns how many were delivered.
    ///
    /// # Errors
    /// The store cannot be reached, or it failed for one of the notices; the others are sent. A notice whose result
    /// cannot be recorded is sent again. A notice that cannot be read is logged and skipped without an error.
    pub async fn send_due(&self) -> Result<u64, StoreError> {
        self.send(&CancellationToken::new()).await
    }

    async fn send(&self, stopping: &CancellationToken) -> Result<u64, StoreError> {
        let (mut sending, mut delivered) = (JoinSet::new(), 0);
        let mut ended = self.begin(stopping, &mut sending, &mut delivered).await;
        while let Some(sent) = sending.join_next().await {
            match sent {
                Ok(Ok(is_delivered)) => delivered += u64::from(is_delivered),
                Ok(Err(error)) => ended = ended.and(Err(error)),
                Err(_) => ended = ended.and(Err(StoreError::Panicked)),
            }
        }
        ended.map(|()| delivered)
    }

    /// Starts the attempts for the notices that are due, several at the same time.
    async fn begin(
        &self,
        stopping: &CancellationToken,
        sending: &mut JoinSet<Result<bool, StoreError>>,
        delivered: &mut u64,
    ) -> Result<(), StoreError> {
        let store = &self.endpoint.store;
        let now = store.now().await?;
        let mut search = Search::of(Query { due: Some(now), ..Query::new(DocumentKind::Notice) });
        while let Some(page) = search.next_reporting(&**store, |found| self.endpoint.warn(&found)).await? {
            let is_pending =
                |listed: &StoredDocument| matches!(&listed.document, Document::Notice(notice) if notice.next.is_some());
            let (pending, over): (Vec<_>, Vec<_>) = page.into_iter().partition(is_pending);
            // These notices ended a week ago. Remove them here, because a process without a worker has no other sweep.
            of_one(&mut search, remove_over(&**store, &over).await)?;
            for listed in pending {
                if sending.len() >= AT_ONCE
                    && let Some(sent) = sending.join_next().await
                {
                    let sent = of_one(&mut search, sent.unwrap_or(Err(StoreError::Panicked)))?;
                    *delivered += u64::from(sent.unwrap_or_default());
                }
                if stopping.is_cancelled() || self.endpoint.is_paused(now) {
                    return search.end();
                }
                let (owner, lease): (Arc<str>, _) = (random_id().to_string().into(), self.timeout + MARGIN);
                let (key, named, own) = (listed.key.clone(), listed.key, Arc::clone(&owner));
                let claim = move |transaction: &mut Transaction| {
                    let claimed = notices::claim(transaction, &named, &own, lease)?;
                    Ok(claimed.map(|notice| (notice, transaction.now())))
                };
                let claimed = transact(&**store, vec![key.clone()], claim).await;
                if let Some((notice, now)) = of_one(&mut search, claimed)?.flatten() {
                    let (endpoint, limit) = (Arc::clone(&self.endpoint), self.timeout);
                    sending.spawn(async move { endpoint.deliver(&key, &notice, &owner, (now, limit)).await });
                }
            }
        }
        search.end()
    }
}

/// Keeps an error about one notice for the end of the round, so that the other notices are sent. Any other error ends
/// the round.
fn of_one<T>(search: &mut Search, result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error @ (StoreError::Corrupt(_) | StoreError::Panicked)) => {
            search.note(Err(error));
            Ok(None)
        }
        result => result.map(Some),
    }
}

impl Endpoint {
    /// Reports a notice that cannot be read, once.
    fn warn(&self, found: &Finding) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = reported.len() < MOST_REPORTED && reported.insert(found.position().unwrap_or_default());
        drop(reported);
        if is_new {
            tracing::warn!(code = found.code(), %found, "a notice cannot be sent");
        }
    }

    /// Makes one attempt, and records its result. Returns whether the notice was delivered.
    async fn deliver(
        &self,
        key: &Key,
        notice: &StoredNotice,
        owner: &Arc<str>,
        (now, limit): (Timestamp, Duration),
    ) -> Result<bool, StoreError> {
        let seconds = now.as_second();
        let signature = self.keys.sign(&notice.id, seconds, &notice.payload);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, endpoint::USER_AGENT)
            .header("webhook-id", &*notice.id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature)
            .body(notice.payload.to_string());
        // The body of the answer is dropped unread.
        let answered = match timeout(limit, request.send()).await {
            Err(_) => Err("timeout"),
            Ok(Err(error)) => Err(if error.is_timeout() { "timeout" } else { "connect" }),
            Ok(Ok(response)) => Ok((response.status().as_u16(), response.headers().clone())),
        };
        let status = answered.as_ref().ok().map(|(status, _)| *status);
        let code = match (&answered, status) {
            (Err(code), _) => Some(*code),
            (_, Some(200..=299)) => None,
            (_, Some(300..=399)) => Some("redirect"),
            (_, Some(410)) => Some("gone"),
            _ => Some("status"),
        };
        let is_gone = code == Some("gone");
        if is_gone {
            *self.gone_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        let headers = answered.ok().map(|(_, headers)| headers);
        let wait = code.and_then(|_| wait(notice, status, headers.as_ref(), now));
        let wait = wait.map(|wait| if is_gone { wait.max(PAUSE) } else { wait });
        if let Some(code) = code {
            let is_last = wait.is_none();
            tracing::warn!(notice = &*notice.id, code, status, is_last, "a notice was not delivered");
        }
        let attempt = NoticeAttempt { at: now, status, code: code.map(Arc::from) };
        let (tried, named, own) = (Tried { attempt, wait }, key.clone(), Arc::clone(owner));
        let settle = move |transaction: &mut Transaction| notices::settle(transaction, &named, &own, &tried);
        transact(&*self.store, vec![key.clone()], settle).await?;
        Ok(code.is_none())
    }

    fn is_paused(&self, now: Timestamp) -> bool {
        let gone_at = *self.gone_at.lock().unwrap_or_else(PoisonError::into_inner);
        // If the clock has jumped back far, `gone_at` lies more than a pause in the future, and no longer counts.
        gone_at.is_some_and(|gone_at| now < after(gone_at, PAUSE) && gone_at < after(now, PAUSE))
    }
}

/// Returns how long to wait after a failed attempt. `None` if it was the last one.
fn wait(notice: &StoredNotice, status: Option<u16>, headers: Option<&HeaderMap>, now: Timestamp) -> Option<Duration> {
    let full = WAITS.get(usize::try_from(notice.tried).ok()?.checked_sub(1)?)?;
    let wait = retry::spread(*full);
    Some(match status.zip(headers).map(|(status, headers)| retry::asked(status, headers, now)) {
        Some(Again::After(asked)) => wait.max(asked.min(LONGEST_WAIT)),
        _ => wait,
    })
}

/// Whether requests to the URL are confidential: they use TLS, or do not leave this machine.
fn is_confidential(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    // The parser has normalised the host, so that digits and dots alone are an IPv4 address.
    let is_address = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match url.scheme() {
        "https" => !host.is_empty(),
        "http" => matches!(host, "localhost" | "[::1]") || (is_address && host.starts_with("127.")),
        _ => false,
    }
}

// The URL can contain a password.
impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_has_no_tls() {
        let is_taken = |url: &str| Url::parse(url).is_ok_and(|url| is_confidential(&url));
        for url in ["https://app.example/x", "http://127.0.0.1:8080/", "http://[::1]/", "http://localhost:1"] {
            assert!(is_taken(url), "{url}");
        }
        for url in ["http://app.example/", "http://127.0.0.1.example/", "http://10.0.0.1/", "ftp://localhost/", "x"] {
            assert!(!is_taken(url), "{url}");
        }
    }
}
