//! `audit purge`, `audit erase` and `audit hold`: removals from the store, and the holds that prevent them.

use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::json;
use tool_runtime::call::Decider;
use tool_runtime::store::{Key, LegalHold, RecordFilter, Retention, RetentionReport, Store};

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::{table, terminal, values};

/// The person who acts, and the reason.
#[derive(Debug, Args)]
pub(crate) struct By {
    /// The person who does this, for the audit record; by default the application's own principal, else `operator`
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    by: Option<String>,
    /// The reason, for the audit record
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    reason: String,
}

/// The runs to purge.
#[derive(Debug, Args)]
pub(crate) struct Purge {
    /// Purge runs whose records are all older than this, for example 90d
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    before: Duration,
    /// Only this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Also remove the results that effect keys keep; the keys stay
    #[arg(long, conflicts_with = "run")]
    results: bool,
    /// Remove nothing, and print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Accept earlier erasures that were signed with the key of this id, which was rotated. Repeatable
    #[arg(long = "accept-key", value_name = "ID")]
    accepted: Vec<String>,
    #[command(flatten)]
    by: By,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Hold {
    /// Put a legal hold on a run, on the runs of --principal (in --tenant, or in every tenant), or on all runs of
    /// --tenant: they are neither purged nor erased
    Add {
        /// Hold this run
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        #[command(flatten)]
        by: By,
    },
    /// List the legal holds
    List,
    /// Lift a legal hold
    Lift {
        /// The hold, as `audit hold list` prints it
        id: String,
        #[command(flatten)]
        by: By,
    },
}

fn person(cli: &Cli<'_>, by: &By) -> Decider {
    let name = by.by.as_deref().or(cli.app.principal.as_deref()).unwrap_or("operator");
    Decider::new(name).because(&by.reason)
}

/// Returns the [`Retention`] of a store in the name of a person, with the digest key that the settings name, if any.
fn acting<'s>(cli: &Cli<'_>, store: &'s dyn Store, by: Decider) -> Result<Retention<'s>, Failure> {
    let retention = Retention::new(store, by);
    Ok(match cli.digest_key()? {
        Some(key) => retention.digest_key(key),
        None => retention,
    })
}

/// Removes old runs.
pub(super) async fn purge(cli: &Cli<'_>, asked: Purge) -> Result<Exit, Failure> {
    let store = cli.existing_records("`--store URL`").await?;
    let retention = acting(cli, &*store, person(cli, &asked.by))?.accept_keys(asked.accepted);
    let retention = retention.dry_run(asked.dry_run).results(asked.results);
    let report = match &asked.run {
        Some(run) => retention.run(run.as_str()).purge(asked.before).await?,
        None => retention.purge(asked.before).await?,
    };
    if asked.run.is_some()
        && let Some((run, why)) = report.kept.first()
    {
        return Err(kept(run, why));
    }
    let verb = if asked.dry_run { "would be purged" } else { "purged" };
    print(cli, &report, verb);
    Ok(Exit::Done)
}

/// Erases the data of the principal.
pub(super) async fn erase(cli: &Cli<'_>, no_tenant: bool, by: &By) -> Result<Exit, Failure> {
    let named = &cli.settings.named;
    let Some(principal) = named.principal.as_ref().filter(|principal| !principal.is_empty()) else {
        return Err(Failure::usage(
            "name the person whose data is erased: --principal ID, with --tenant ID or --no-tenant",
        ));
    };
    let tenant = erased_tenant(cli.party().tenant, named.tenant.is_some(), no_tenant)?;
    let store = cli.existing_records("`--store URL`").await?;
    let report = acting(cli, &*store, person(cli, by))?.erase(principal, tenant.as_deref()).await?;
    if !cli.settings.json {
        let place = tenant.map_or_else(|| "without a tenant".to_owned(), |tenant| format!("in the tenant {tenant}"));
        terminal::line(&terminal::safe(&format!("the data of {principal} {place}")));
    }
    print(cli, &report, "erased");
    let Some((_, why)) = report.kept.first() else { return Ok(Exit::Done) };
    let mut whys: Vec<_> = report.kept.iter().map(|(_, why)| *why).collect();
    whys.sort_unstable();
    whys.dedup();
    whys.iter().for_each(|why| terminal::note(&format!("{why}: {}", remedy(why))));
    // The code for programs is the reason of the first run that was kept.
    Err(Failure::failed("some runs were kept: remove the reasons above, then erase again").code(why))
}

/// Returns the tenant whose data is erased. The options, the settings or the application must name a tenant, or the
/// command has `--no-tenant`, because an erasure in the wrong tenant would succeed without erasing anything.
fn erased_tenant(tenant: Option<Arc<str>>, is_named: bool, no_tenant: bool) -> Result<Option<Arc<str>>, Failure> {
    match (tenant, no_tenant) {
        (_, true) if is_named => Err(Failure::usage("name --tenant ID or --no-tenant, and not both")),
        (_, true) => Ok(None),
        (Some(tenant), false) if !tenant.is_empty() => Ok(Some(tenant)),
        (_, false) => Err(Failure::usage("name the tenant: --tenant ID, or --no-tenant for the runs without one")),
    }
}

fn kept(run: &str, why: &'static str) -> Failure {
    Failure::failed(format!("the run `{}` is kept: {}", terminal::safe(run), remedy(why))).code(why)
}

/// Returns why a run is kept, and the remedy.
fn remedy(why: &str) -> &'static str {
    match why {
        "legal_hold" => "a legal hold covers it; see `audit hold list`",
        "unsettled" => "the outcome of a call is unknown; settle it, see `outcomes list`",
        "broken" => {
            "its chain does not verify (see `audit verify`), or a document of it cannot be read: restore it from a backup"
        }
        "many_parties" => "its records belong to more than 64 principals or tenants; it is never purged",
        "not_erasable" => "an earlier version sealed records of it; purge it",
        _ => {
            "a call is open or waits, a message waits, or a process has the run or has to continue it: wait for its \
             end, or end it; or it is held back after a restore: see `store release`"
        }
    }
}

fn print(cli: &Cli<'_>, report: &RetentionReport, verb: &str) {
    let RetentionReport { runs, records, documents, kept, kept_runs, .. } = report;
    if cli.settings.json {
        let kept: Vec<_> = kept.iter().map(|(run, why)| json!({"run": **run, "why": why})).collect();
        let report =
            json!({"runs": runs, "records": records, "documents": documents, "kept_runs": kept_runs, "kept": kept});
        terminal::line(&report.to_string());
        return;
    }
    terminal::line(&format!("{verb}: runs {runs}, records {records}, other documents {documents}"));
    for (run, why) in kept {
        terminal::line(&format!("kept: {}  {why}", terminal::safe(run)));
    }
    if *kept_runs > kept.len() as u64 {
        terminal::note(&format!("at most {kept_runs} runs were kept in all"));
    }
}

/// Puts, lists or lifts legal holds.
pub(super) async fn hold(cli: &Cli<'_>, action: Hold) -> Result<Exit, Failure> {
    let store = cli.existing_records("`--store URL`").await?;
    match action {
        Hold::Add { run, by } => {
            let named = &cli.settings.named;
            let retention = || acting(cli, &*store, person(cli, &by));
            let hold = match (run, named.principal.as_deref(), named.tenant.as_deref()) {
                (Some(run), None, None) => retention()?.hold_run(run).await?,
                // Without a tenant on the command line, the hold covers every tenant, not only the application's own.
                (None, Some(principal), tenant) => retention()?.hold_principal(principal, tenant).await?,
                (None, None, Some(tenant)) => retention()?.hold_tenant(tenant).await?,
                _ => {
                    return Err(Failure::usage(
                        "name what is held: --run ID, --principal NAME, --principal NAME --tenant NAME, or --tenant NAME",
                    ));
                }
            };
            let id = terminal::safe(&hold.id);
            terminal::line(&if cli.settings.json {
                json!({"id": *hold.id}).to_string()
            } else {
                format!("held: {id}")
            });
            if let Some(run) = hold.run_id()
                && !is_known(&*store, run).await?
            {
                let run = terminal::safe(run);
                terminal::note(&format!("no records of run `{run}` yet: the hold is kept"));
            }
        }
        Hold::List => list(cli, &Retention::new(&*store, Decider::new("operator")).holds().await?),
        Hold::Lift { id, by } => {
            if !acting(cli, &*store, person(cli, &by))?.lift(&id).await? {
                let text = format!("there is no legal hold `{}` (see `audit hold list`)", terminal::safe(&id));
                return Err(Failure::usage(text).code("not_found"));
            }
        }
    }
    Ok(Exit::Done)
}

/// Whether the store has a record or the conversation of a run.
async fn is_known(store: &dyn Store, run: &Arc<str>) -> Result<bool, Failure> {
    let mut filter = RecordFilter { limit: Some(1), ..RecordFilter::run(Arc::clone(run)) };
    Ok(filter.next_page(store).await?.is_some() || store.read(&[Key::run(Arc::clone(run))]).await?[0].is_some())
}

fn list(cli: &Cli<'_>, holds: &[LegalHold]) {
    if cli.settings.json {
        holds.iter().for_each(|hold| terminal::line(&serde_json::to_string(hold).unwrap_or_default()));
        return;
    }
    if holds.is_empty() {
        terminal::note("there is no legal hold");
        return;
    }
    table::print(["SINCE", "HELD", "BY", "REASON", "HOLD"], &holds.iter().map(row).collect::<Vec<_>>());
}

fn row(hold: &LegalHold) -> [String; 5] {
    let held = match (hold.run_id(), hold.principal(), hold.tenant()) {
        (Some(run), ..) => format!("run {run}"),
        (None, Some(principal), None) => format!("principal {principal}"),
        (None, Some(principal), Some(tenant)) => format!("principal {principal} of {tenant}"),
        (None, None, tenant) => format!("tenant {}", tenant.map(|tenant| &**tenant).unwrap_or_default()),
    };
    let reason = hold.by.reason().unwrap_or_default().to_owned();
    [format!("{:.0}", hold.since), held, hold.by.principal().to_owned(), reason, hold.id.to_string()]
        .map(|cell| terminal::safe(&cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erasure_names_its_tenant() {
        let acme = || Some(Arc::from("acme"));
        // The tenant of the command line or of the application, whether it was named, and `--no-tenant`.
        assert_eq!(erased_tenant(acme(), true, false).ok(), Some(acme()));
        assert_eq!(erased_tenant(acme(), false, false).ok(), Some(acme()), "the application's own");
        assert_eq!(erased_tenant(acme(), false, true).ok(), Some(None), "the runs without one");
        assert_eq!(erased_tenant(None, false, true).ok(), Some(None));
        let empty = erased_tenant(Some("".into()), true, false);
        for refused in [erased_tenant(None, false, false), erased_tenant(acme(), true, true), empty] {
            let failure = refused.err().map(|failure| (failure.exit, failure.message.contains("--no-tenant")));
            assert_eq!(failure, Some((Exit::Usage, true)));
        }
    }
}
