//! The grammar of `audit`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use tool_runtime::call::Outcome;
use tool_runtime::store::{AuditKind, DecisionKind, RecordFilter};

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// List records, oldest first; --principal and --tenant narrow the list, too
    Show {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        which: Which,
    },
    /// List calls that began and have no record of their end: they run, or their process is gone
    Open {
        /// Of this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
    },
    /// Check the chains of all runs and the anchors over them, and name the first thing that is wrong
    Verify {
        #[command(flatten)]
        source: Source,
        /// Anchors that were exported, as JSON lines: each has to be as it was
        #[arg(long, value_name = "FILE")]
        anchors: Option<PathBuf>,
        /// Accept runs whose first records are not in the file
        #[arg(long, requires = "records")]
        part: bool,
    },
    /// Print records as JSON lines, which `audit verify --records` checks
    Export {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        which: Which,
        /// Print the anchors instead
        #[arg(long, conflicts_with_all = ["records", "Which"])]
        anchors: bool,
    },
    /// Anchor what was recorded since the last anchor, and print the new anchors as JSON lines
    Anchor,
}

/// Where records are read.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Records that were exported, as JSON lines; `-` is standard input. Without it they are those of --store
    #[arg(long, value_name = "FILE")]
    pub(crate) records: Option<PathBuf>,
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Of calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// With this outcome, such as `ok` or `policy_denied`, or this decision, such as `approved`
    #[arg(long, value_name = "CODE", value_parser = code)]
    outcome: Option<String>,
    /// Of decisions by this principal
    #[arg(long, value_name = "NAME")]
    decider: Option<String>,
    /// Of calls that ended, and decisions made, at this time or later: 2026-01-31, or with a time as in
    /// 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// The same, before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Of calls, or of decisions: call, decision
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<AuditKind>,
    /// How many at most; a table has 1000 unless this says more
    #[arg(long, value_name = "N", value_parser = super::values::at_least_one)]
    limit: Option<usize>,
}

impl Which {
    /// The filter, with the party that the command line names.
    pub(crate) fn filter(self, principal: Option<&str>, tenant: Option<&str>) -> RecordFilter {
        RecordFilter {
            run_id: self.run.map(Arc::from),
            kind: self.kind,
            tool: self.tool.map(Arc::from),
            code: self.outcome.map(Arc::from),
            principal: principal.map(Arc::from),
            tenant: tenant.map(Arc::from),
            decider: self.decider.map(Arc::from),
            since: self.since,
            until: self.until,
            limit: self.limit,
            ..RecordFilter::default()
        }
    }
}

fn code(text: &str) -> Result<String, String> {
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.code());
    let known: Vec<_> = outcomes.chain(DecisionKind::ALL.iter().map(|decision| decision.code())).collect();
    if known.contains(&text) { Ok(text.to_owned()) } else { Err(format!("write one of {}", known.join(", "))) }
}

fn kind(text: &str) -> Result<AuditKind, String> {
    let kinds = [AuditKind::Call, AuditKind::Decision];
    kinds.into_iter().find(|kind| kind.code() == text).ok_or_else(|| "write call or decision".to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    // A date also reads from a time, and would forget it.
    let day = || {
        let day = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == "2026-01-31".len())?;
        day.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp())
    };
    let wrong = "write a day, such as 2026-01-31, or a time with its offset, such as 2026-01-31T08:00:00Z";
    text.parse().ok().or_else(day).ok_or_else(|| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight() {
        assert_eq!(time("2026-01-31").unwrap().to_string(), "2026-01-31T00:00:00Z");
        assert_eq!(time("2026-01-31T08:00:00+01:00").unwrap().to_string(), "2026-01-31T07:00:00Z");
        for wrong in ["", "yesterday", "2026-02-30", "2026-01-31T08:00:00", "08:00"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outcomes_and_decisions_are_known() {
        for known in ["ok", "outcome_unknown", "approved", "remembered", "client_failed"] {
            assert_eq!(code(known).as_deref(), Ok(known));
        }
        assert!(code("allowed").is_err() && kind("grant").is_err());
    }
}
