//! `audit`: records are listed, checked and exported, and their chains anchored.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::cli::args::{Audit, Source, Which};
use crate::cli::call::json;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::cli::{input, table, terminal};
use crate::store::finding::Finding;
use crate::store::verify::{Checked, Verifier, VerifyError, verify};
use crate::store::{Anchor, AuditRecord, Document, Query, RecordFilter, Sealed, Space, Store, anchor};

/// How many records are read at a time.
const PAGE: usize = 500;
/// How many rows a table has unless more are asked for.
const ROWS: usize = 1000;
/// The longest line of a file of records, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

pub(super) async fn audit(cli: &Cli<'_>, action: Audit) -> Result<Exit, Failure> {
    match action {
        Audit::Show { source, which } => show(cli, &source, which).await,
        Audit::Verify { source, anchors, part } => check(cli, &source, anchors.as_deref(), part).await,
        Audit::Export { anchors: true, .. } => export_anchors(cli).await,
        Audit::Export { source, which, .. } => {
            each(cli, &source, filter(cli, which), print).await?;
            Ok(Exit::Done)
        }
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

/// Hands out records, a page at a time.
async fn each(
    cli: &Cli<'_>,
    source: &Source,
    mut filter: RecordFilter,
    mut take: impl FnMut(&Sealed) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = filter.limit.unwrap_or(usize::MAX);
    if let Some(path) = &source.records {
        return lines(path, |sealed| match left.checked_sub(usize::from(filter.matches(&sealed.record))) {
            Some(now) if now < left => {
                left = now;
                take(&sealed)
            }
            _ => Ok(()),
        });
    }
    let store = store(cli).await?;
    while left > 0 {
        filter.limit = Some(left.min(PAGE));
        let page = store.records(&filter).await?;
        page.iter().try_for_each(&mut take)?;
        let Some(last) = page.last() else { break };
        (filter.after, left) = (last.position, left - page.len());
    }
    Ok(())
}

/// Reads a file of records, line by line.
fn lines(path: &Path, mut take: impl FnMut(Sealed) -> Result<(), Failure>) -> Result<(), Failure> {
    let unreadable = |message: String| Failure::usage(message).code("unreadable_input");
    let shown = path.display();
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(|error| unreadable(format!("cannot open {shown}: {error}")))?)
    };
    let (mut reader, mut line, mut number) = (BufReader::new(reader), Vec::new(), 0_u64);
    loop {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| unreadable(format!("cannot read {shown}: {error}")))? == 0 {
            return Ok(());
        }
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // The text of the error could quote a value.
        let sealed = serde_json::from_slice(&line).map_err(|error| {
            unreadable(format!("{shown}, line {number}: not a sealed record (column {})", error.column()))
        });
        take(sealed?)?;
    }
}

async fn show(cli: &Cli<'_>, source: &Source, which: Which) -> Result<Exit, Failure> {
    let mut filter = filter(cli, which);
    if cli.settings.json {
        each(cli, source, filter, print).await?;
        return Ok(Exit::Done);
    }
    let most = *filter.limit.get_or_insert(ROWS);
    let mut rows = Vec::new();
    each(cli, source, filter, |sealed| {
        rows.push(row(sealed));
        Ok(())
    })
    .await?;
    if rows.is_empty() {
        terminal::note("no record");
        return Ok(Exit::Done);
    }
    table::print(["TIME", "TOOL", "OUTCOME", "PRINCIPAL", "RUN", "NO", "DECIDED BY", "CALL"], &rows);
    if rows.len() == most {
        terminal::note(&format!("these are the first {most}; --limit shows more, --since later ones"));
    }
    Ok(Exit::Done)
}

fn row(sealed: &Sealed) -> [String; 8] {
    let record = &sealed.record;
    let (code, decider) = match record {
        AuditRecord::Decision(decision) => {
            let refused = decision.refused.as_ref().map(|refused| format!(" ({})", refused.outcome));
            let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned());
            (format!("{}{}", record.code(), refused.unwrap_or_default()), decider)
        }
        AuditRecord::Call(_) => (record.code().to_owned(), None),
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
    let mut query = Query { limit: 16, ..Query::new(Space::Anchor) };
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
    },
    Broken {
        ok: bool,
        code: &'a str,
        run: Option<&'a str>,
        sequence: Option<u64>,
        anchor: Option<u64>,
        message: String,
    },
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
            match verify(&*store, &kept, progress).await {
                Ok(checked) => Ok(checked),
                Err(VerifyError::Found(finding)) => Err(finding),
                Err(VerifyError::Store(error)) => return Err(error.into()),
            }
        }
    };
    terminal::clear_progress();
    let (verified, exit) = match &checked {
        Ok(Checked { records, runs, anchors, unanchored }) => {
            let verified = Verified::Whole {
                ok: true,
                records: *records,
                runs: *runs,
                anchors: *anchors,
                unanchored_runs: *unanchored,
            };
            (verified, Exit::Done)
        }
        Err(finding) => {
            let (run, sequence) = finding.record().unzip();
            let (code, message) = (finding.code(), finding.to_string());
            let anchor = finding.anchor();
            (Verified::Broken { ok: false, code, run, sequence, anchor, message }, Exit::Failed)
        }
    };
    terminal::line(&match (&checked, cli.settings.json) {
        (_, true) => json(&verified)?,
        (Ok(checked), false) => whole(checked),
        (Err(finding), false) => {
            format!("{} {}", terminal::tone(terminal::Tone::Bad, "broken:"), terminal::safe(&finding.to_string()))
        }
    });
    Ok(exit)
}

fn whole(checked: &Checked) -> String {
    let Checked { records, runs, anchors, unanchored } = checked;
    format!(
        "whole: records {records}, runs {runs}, anchors {anchors}, runs with records behind the last anchor {unanchored}"
    )
}

fn check_file(path: &Path, kept: &[Anchor], part: bool) -> Result<Result<Checked, Finding>, Failure> {
    let mut verifier = Verifier::new(part);
    let mut checked = kept.iter().try_for_each(|anchor| verifier.expect(anchor));
    lines(path, |sealed| {
        if checked.is_ok() {
            checked = verifier.follow(&sealed);
        }
        Ok(())
    })?;
    Ok(checked.and_then(|()| verifier.finish()))
}

/// Reads anchors that were exported.
fn exported(path: &Path) -> Result<Vec<Anchor>, Failure> {
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
