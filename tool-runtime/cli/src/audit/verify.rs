//! `audit verify`: finds damage to chains and anchors, in a store or in a file of records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tool_runtime::store::{Anchor, Finding, Verification};

use crate::audit::RecordInput;
use crate::audit::lines::each_line;
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::{input, terminal};

/// The findings of `verify`, as `--json` prints them.
#[derive(Serialize)]
#[serde(untagged)]
enum Verified<'a> {
    Whole {
        ok: bool,
        records: u64,
        runs: u64,
        anchors: u64,
        unanchored_runs: u64,
        purged: u64,
        erased: u64,
        /// The number of erased records whose erasure has no record in the checked part.
        erased_unlisted: u64,
        digest_keys: &'a BTreeSet<String>,
        /// The ids of keys whose signatures of removals were accepted without a check.
        unchecked_keys: &'a BTreeSet<String>,
    },
    Broken {
        ok: bool,
        /// The first finding.
        #[serde(flatten)]
        first: &'a FindingRow<'a>,
        findings: &'a [FindingRow<'a>],
    },
}

#[derive(Serialize)]
struct FindingRow<'a> {
    code: &'a str,
    run: Option<&'a str>,
    sequence: Option<u64>,
    anchor: Option<u64>,
    message: String,
}

impl<'a> FindingRow<'a> {
    fn of(finding: &'a Finding) -> Self {
        let (run, sequence) = finding.record().unzip();
        Self { code: finding.code(), run, sequence, anchor: finding.anchor(), message: finding.to_string() }
    }
}

/// The options of `verify`.
pub(super) struct With {
    pub(super) anchors: Option<PathBuf>,
    pub(super) part: bool,
    pub(super) accepted: Vec<String>,
}

pub(super) async fn check(cli: &Cli<'_>, source: &RecordInput, with: With) -> Result<Exit, Failure> {
    let kept = with.anchors.as_deref().map(exported).transpose()?.unwrap_or_default();
    let mut verification = Verification::new().accept_keys(with.accepted);
    if let Some(key) = cli.digest_key()? {
        verification = verification.digest_key(key);
    }
    let checked = match &source.records {
        Some(path) => verification.verify_lines(&kept, with.part, |check| each_line(path, check))?,
        None => {
            let store = super::store_or_file(cli).await?;
            let watched = terminal::is_watched();
            let progress = |records| {
                if watched {
                    terminal::progress(&format!("{records} records"));
                }
            };
            // Exit code 1 means damage, so an error gets another code.
            verification.verify_store(&*store, &kept, progress).await.map_err(|error| Failure::from(error).unread())?
        }
    };
    terminal::clear_progress();
    let Verification { records, runs, anchors, unanchored, purged, erased, digest_keys, unchecked_keys, .. } = &checked;
    if checked.findings.is_empty() {
        let verified = Verified::Whole {
            ok: true,
            records: *records,
            runs: *runs,
            anchors: *anchors,
            unanchored_runs: *unanchored,
            purged: *purged,
            erased: *erased,
            erased_unlisted: checked.erased_unlisted,
            digest_keys,
            unchecked_keys,
        };
        terminal::line(&if cli.settings.json { json(&verified)? } else { whole(&checked) });
        return Ok(Exit::Done);
    }
    let findings: Vec<_> = checked.findings.iter().map(FindingRow::of).collect();
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
    let Verification { records, runs, anchors, unanchored, purged, erased, digest_keys, unchecked_keys, .. } = checked;
    let mut text = format!(
        "intact: records {records}, runs {runs}, anchors {anchors}, runs with records behind the last anchor \
         {unanchored}"
    );
    if (*purged, *erased) != (0, 0) {
        let removed = format!("\nremoved by signed records: records purged {purged}, records erased {erased}");
        text.push_str(&removed);
    }
    if checked.erased_unlisted != 0 {
        let unlisted = checked.erased_unlisted;
        let unlisted =
            format!("\nrecords that are erased, without the record of their erasure in this part: {unlisted}");
        text.push_str(&unlisted);
    }
    if !unchecked_keys.is_empty() {
        let keys = unchecked_keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        text.push_str("\nsignatures of removals were accepted without a comparison, of the keys ");
        text.push_str(&keys);
    }
    if digest_keys.len() > 1 {
        let keys = digest_keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        text.push_str("\narguments were digested with several keys (");
        text.push_str(&keys);
        text.push_str("): digests of different keys cannot be compared");
    }
    text
}

/// Reads exported anchors from a file.
pub(crate) fn exported(path: &Path) -> Result<Vec<Anchor>, Failure> {
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
