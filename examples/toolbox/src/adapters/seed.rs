//! The contents of a new database.

use rusqlite::{Transaction, params};

const TASKS: [(&str, &str, &str, Option<&str>); 5] = [
    ("0c5e9f3a-1b2d-4e6f-8a7b-9c0d1e2f3a4b", "Onboarding of the new colleague", "blocked", Some("2026-12-01")),
    ("7f1c2d34-9a5b-4c6d-8e7f-0a1b2c3d4e5f", "Renew the office lease", "in_progress", Some("2026-12-15")),
    ("5d0f6b1e-3c47-4a52-9b8d-2f7e6a9c1d30", "Order printer paper", "todo", None),
    ("a4b8c2d6-7e1f-4839-b5a0-6c3d9e2f1b47", "Prepare the quarterly review", "todo", Some("2027-01-08")),
    ("e9d3f7a1-5b24-4c68-8f0e-1a6b7c8d9e02", "Fix the coffee machine", "done", None),
];

const DOCUMENTS: [(&str, &str, &str); 7] = [
    (
        "login-guide",
        "Login guide",
        "How to log in: open the portal, enter your name, confirm on your phone. A login expires after twelve hours.",
    ),
    (
        "login-trouble",
        "Trouble with the login",
        "When the login page refuses you, wait ten minutes, then ask for a reset at the help desk.",
    ),
    (
        "single-sign-on",
        "Single sign-on",
        "One login for all services. Administrators connect a service on the page for identity providers.",
    ),
    (
        "rate-limits",
        "Rate limits",
        "The public interface allows 600 requests a minute for each key. Past the limit it answers with status 429.",
    ),
    (
        "retries",
        "Retries",
        "Clients retry on status 429 and 503, with growing pauses and at most five times. Other errors are not retried.",
    ),
    (
        "onboarding",
        "Onboarding checklist",
        "First day: badge, laptop, login. First week: meet the team, read the handbook.",
    ),
    ("expenses", "Expenses", "Hand in receipts within thirty days. Travel above 500 needs approval beforehand."),
];

const EVENTS: [(&str, &str, &str); 4] = [
    ("2026-11-23", "Team meeting", "bob@example.com,carol@example.com"),
    ("2026-11-24", "Lunch with Carol", "carol@example.com"),
    ("2026-11-27", "Lease signing", "landlord@example.com"),
    ("2026-12-01", "Welcome of the new colleague", "team@example.com"),
];

/// Fills a new database.
pub(crate) fn fill(transaction: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    for (id, title, state, due) in TASKS {
        let task = "INSERT INTO tasks VALUES (?1, ?2, ?3, ?4, 'ada@example.com')";
        transaction.execute(task, params![id, title, state, due])?;
    }
    for (id, title, body) in DOCUMENTS {
        transaction.execute("INSERT INTO documents VALUES (?1, ?2, ?3)", params![id, title, body])?;
    }
    for (date, title, attendees) in EVENTS {
        let event = "INSERT INTO events VALUES ('calendar-of-ada', ?1, ?2, ?3)";
        transaction.execute(event, params![date, title, attendees])?;
    }
    // More entries than fit into a result, to show how a result is shortened.
    transaction.execute(
        "WITH RECURSIVE entry(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM entry WHERE n < 19999)
         INSERT INTO door_log SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 1790000000 + n * 97, 'unixepoch'),
             printf('door %d', n % 12), printf('badge %05d', n * 7919 % 100000) FROM entry",
        [],
    )?;
    Ok(())
}
