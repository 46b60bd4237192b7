//! `audit`: records are listed, checked and exported, and their chains anchored.

mod lines;
mod open;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tool_runtime::store::{
    Anchor, AuditRecord, Document, Finding, Query, RecordFilter, Sealed, Space, Store, Verification, Verifier, anchor,
};

use crate::args::{Audit, Source, Which};
use crate::audit::lines::{each_line, lines};
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{input, table, terminal};

/// How many records are read at a time.
const PAGE: usize = 500;
/// How many rows a table has unless more are asked for.
const ROWS: usize = 1000;

pub(super) async fn audit(cli: &Cli<'_>, action: Audit) -> Result<Exit, Failure> {
    match action {
        Audit::Show { source, which } => show(cli, &source, which).await,
        Audit::Open { run } => open::open(cli, run).await,
        Audit::Verify { source, anchors, part } => check(cli, &source, anchors.as_deref(), part).await,
        Audit::Export { anchors: true, .. } => export_anchors(cli).await,
        Audit::Export { source, which, .. } => each(cli, &source, filter(cli, which), print).await,
        Audit::Anchor => {
            let (store, mut printed) = (store(cli).await?, Ok(()));
            let print = |anchor: &Anchor| match json(anchor) {
                Ok(line) => terminal::line(&line),
                Err(failure) => printed = Err(failure),
            };
            let made = anchor(&*store, print).await?;
            printed?;
            if made == 0 {
                terminal::note("nothing was recorded since the last anchor");
            }
            Ok(Exit::Done)
        }
    }
}

/// The store, which has to be there: what is looked for is not in one that was made just now.
async fn store(cli: &Cli<'_>) -> Result<Arc<dyn Store>, Failure> {
    let found = cli.existing_store().await?;
    found.ok_or_else(|| Failure::usage("name where the records are: `--store URL`, or `--records FILE`"))
}

fn filter(cli: &Cli<'_>, which: Which) -> RecordFilter {
    let named = &cli.settings.named;
    which.filter(named.principal.as_deref(), named.tenant.as_deref())
}

fn print(sealed: &Sealed) -> Result<(), Failure> {
    terminal::line(&json(sealed)?);
    Ok(())
}

/// Hands out records, a page at a time. A record that cannot be read is named on stderr and fails the command.
async fn each(
    cli: &Cli<'_>,
    source: &Source,
    mut filter: RecordFilter,
    mut take: impl FnMut(&Sealed) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut left = filter.limit.unwrap_or(usize::MAX);
    if let Some(path) = &source.records {
        lines(path, |sealed| match left.checked_sub(usize::from(filter.matches(&sealed.record))) {
            Some(now) if now < left => {
                left = now;
                take(&sealed)
            }
            _ => Ok(()),
        })?;
        return Ok(Exit::Done);
    }
    let (store, mut exit) = (store(cli).await?, Exit::Done);
    while left > 0 {
        filter.limit = Some(left.min(PAGE));
        let Some(records) = filter.next_page(&*store).await? else { break };
        for record in records {
            match record {
                Ok(sealed) => {
                    take(&sealed)?;
                    left -= 1;
                }
                Err(unreadable) => {
                    let broken = terminal::tone(terminal::Tone::Bad, "broken:");
                    terminal::message(&format!("{broken} {}", terminal::safe(&unreadable.to_string())));
                    exit = Exit::Failed;
                }
            }
        }
    }
    Ok(exit)
}

async fn show(cli: &Cli<'_>, source: &Source, which: Which) -> Result<Exit, Failure> {
    let mut filter = filter(cli, which);
    if cli.settings.json {
        return each(cli, source, filter, print).await;
    }
    let most = *filter.limit.get_or_insert(ROWS);
    let mut rows = Vec::new();
    let exit = each(cli, source, filter, |sealed| {
        rows.push(row(sealed));
        Ok(())
    })
    .await?;
    if rows.is_empty() {
        terminal::note("no record");
        return Ok(exit);
    }
    table::print(["TIME", "TOOL", "OUTCOME", "PRINCIPAL", "RUN", "NO", "DECIDED BY", "CALL"], &rows);
    if rows.len() == most {
        terminal::note(&format!("these are the first {most}; --limit shows more, --since later ones"));
    }
    Ok(exit)
}

fn row(sealed: &Sealed) -> [String; 8] {
    let record = &sealed.record;
    let (code, decider) = match record {
        AuditRecord::Decision(decision) => {
            let refused = decision.refused.as_ref().map(|refused| format!(" ({})", refused.outcome));
            let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned());
            (format!("{}{}", record.code(), refused.unwrap_or_default()), decider)
        }
        _ => (record.code().to_owned(), None),
    };
    [
        format!("{:.0}", record.at()),
        record.tool().to_owned(),
        code,
        record.principal().map(ToString::to_string).unwrap_or_default(),
        record.run_id().to_string(),
        sealed.sequence.to_string(),
        decider.unwrap_or_default(),
        record.call_id().to_string(),
    ]
    .map(|cell| terminal::safe(&cell))
}

async fn export_anchors(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let store = store(cli).await?;
    let mut query = Query::new(Space::Anchor);
    query.limit = 16;
    loop {
        let page = store.list(&query).await?;
        let Some(last) = page.last() else { return Ok(Exit::Done) };
        query.after = last.position;
        for listed in &page {
            if let Document::Anchor(anchor) = &listed.document {
                terminal::line(&json(anchor)?);
            }
        }
    }
}

/// What `verify` found, as `--json` prints it.
#[derive(Serialize)]
#[serde(untagged)]
enum Verified<'a> {
    Whole {
        ok: bool,
        records: u64,
        runs: u64,
        anchors: u64,
        unanchored_runs: u64,
        digest_keys: &'a BTreeSet<String>,
    },
    Broken {
        ok: bool,
        /// The first of the findings.
        #[serde(flatten)]
        first: &'a Found<'a>,
        findings: &'a [Found<'a>],
    },
}

#[derive(Serialize)]
struct Found<'a> {
    code: &'a str,
    run: Option<&'a str>,
    sequence: Option<u64>,
    anchor: Option<u64>,
    message: String,
}

impl<'a> Found<'a> {
    fn of(finding: &'a Finding) -> Self {
        let (run, sequence) = finding.record().unzip();
        Self { code: finding.code(), run, sequence, anchor: finding.anchor(), message: finding.to_string() }
    }
}

async fn check(cli: &Cli<'_>, source: &Source, anchors: Option<&Path>, part: bool) -> Result<Exit, Failure> {
    let kept = anchors.map(exported).transpose()?.unwrap_or_default();
    let checked = match &source.records {
        Some(path) => check_file(path, &kept, part)?,
        None => {
            let store = store(cli).await?;
            let watched = terminal::is_watched();
            let progress = |records| {
                if watched {
                    terminal::progress(&format!("{records} records"));
                }
            };
            Verifier::verify(&*store, &kept, progress).await?
        }
    };
    terminal::clear_progress();
    let Verification { records, runs, anchors, unanchored, digest_keys, .. } = &checked;
    if checked.findings.is_empty() {
        let verified = Verified::Whole {
            ok: true,
            records: *records,
            runs: *runs,
            anchors: *anchors,
            unanchored_runs: *unanchored,
            digest_keys,
        };
        terminal::line(&if cli.settings.json { json(&verified)? } else { whole(&checked) });
        return Ok(Exit::Done);
    }
    let findings: Vec<_> = checked.findings.iter().map(Found::of).collect();
    match findings.first() {
        Some(first) if cli.settings.json => {
            terminal::line(&json(&Verified::Broken { ok: false, first, findings: &findings })?);
        }
        _ => {
            for found in &findings {
                let broken = terminal::tone(terminal::Tone::Bad, "broken:");
                terminal::line(&format!("{broken} {}", terminal::safe(&found.message)));
            }
        }
    }
    Ok(Exit::Failed)
}

fn whole(checked: &Verification) -> String {
    let Verification { records, runs, anchors, unanchored, digest_keys, .. } = checked;
    let mut text = format!(
        "whole: records {records}, runs {runs}, anchors {anchors}, runs with records behind the last anchor {unanchored}"
    );
    if digest_keys.len() > 1 {
        let keys = digest_keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        text.push_str("\ndigests of arguments were made with several keys (");
        text.push_str(&keys);
        text.push_str("): those of two keys do not compare");
    }
    text
}

fn check_file(path: &Path, kept: &[Anchor], part: bool) -> Result<Verification, Failure> {
    let mut verifier = Verifier::new(part);
    kept.iter().for_each(|anchor| verifier.expect(anchor));
    each_line(path, |line| verifier.follow_line(line))?;
    Ok(verifier.finish())
}

/// Reads anchors that were exported.
pub(super) fn exported(path: &Path) -> Result<Vec<Anchor>, Failure> {
    let text = input::text(input::file(path)?, &path.display().to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let place = format!("{}, line {}", path.display(), number + 1);
            Failure::usage(format!("{place}: not an anchor (column {})", error.column())).code("unreadable_input")
        })
    };
    lines.map(read).collect()
}
