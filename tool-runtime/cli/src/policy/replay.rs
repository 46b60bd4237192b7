//! `policy replay`: decides recorded calls again under another policy.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tool_runtime::call::{Caller, Decision, JsonText};
use tool_runtime::policy::{PolicyContext, PolicyResource};
use tool_runtime::{ToolCatalog, ToolPolicy};

use crate::exit::{Exit, Failure};
use crate::session::{Cli, Party};
use crate::terminal::json;
use crate::{input, terminal, values};

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Records as JSON lines, as `audit export` and `call --view audit` print them; `-` is standard input
    #[arg(long, value_name = "FILE")]
    records: PathBuf,
    /// The other policy
    #[arg(long, value_name = "POLICY")]
    with: PathBuf,
    /// A label that every run has from its start; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// Print only the calls whose decisions differ, and the counts
    #[arg(long)]
    differences: bool,
}

/// The arguments in a record.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PastArguments {
    /// The parsed arguments, with sensitive ones masked.
    Masked(JsonText),
    /// Arguments that could not be parsed.
    Unread(serde::de::IgnoredAny),
}

/// The members of a record that a replay needs.
#[derive(Deserialize)]
struct Past {
    tool_call_id: String,
    name: String,
    run_id: Arc<str>,
    arguments: PastArguments,
    #[serde(default)]
    executed: bool,
    principal: Option<Arc<str>>,
    tenant: Option<Arc<str>>,
    #[serde(default)]
    roles: Vec<Arc<str>>,
    #[serde(default)]
    attributes: Vec<(Arc<str>, Arc<str>)>,
    #[serde(default)]
    caller: Caller,
    decision: Option<Decision>,
    repair: Option<Value>,
}

/// A call that was decided again, as `--json` prints it.
#[derive(Serialize)]
struct Again {
    run: Arc<str>,
    call: String,
    tool: String,
    result: Compared,
    before: Decision,
    /// The decision of the other policy; `None` if the record does not contain enough to decide.
    now: Option<Decision>,
}

/// The comparison of the two decisions on a call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Compared {
    /// The verdict is the same; the rule may differ.
    Same,
    Differs,
    /// The policy reads an argument that the record masks, or the record has no arguments.
    Undecided,
    /// The catalog no longer has the tool.
    UnknownTool,
}

/// The counts of the compared calls, as `--json` prints them.
#[derive(Default, Serialize)]
struct Counts {
    calls: u64,
    same: u64,
    differ: BTreeMap<String, u64>,
    /// The policy reads an argument that the record masks, or the record has no arguments.
    undecided: u64,
    /// The catalog no longer has the tool.
    unknown_tools: u64,
    /// The record has no decision of a policy, or the line is not the record of a call.
    not_decided: u64,
}

pub(super) fn replay(cli: &Cli<'_>, asked: &Replay) -> Result<Exit, Failure> {
    let Replay { records, with, labels, differences } = asked;
    let catalog = cli.catalog()?;
    let policy =
        ToolPolicy::from_path(with).map_err(|error| Failure::usage(error.to_string()).code("policy_problem"))?;
    let policy = Cli::checked(&catalog, policy)?;
    let text = input::text(input::file(records)?, &records.display().to_string())?;
    let mut other =
        Other { catalog, policy, party: cli.party(), given: values::shared(labels), labels: HashMap::new() };
    let mut counts = Counts::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: serde_json::Error| {
            let place = format!("{}, line {}", records.display(), number + 1);
            // The error's text could quote a private value, so the message has only the column.
            Failure::usage(format!("{place}: not a record (column {})", error.column())).code("unreadable_input")
        };
        let Some(record) = call(serde_json::from_str(line).map_err(wrong)?) else {
            counts.not_decided += 1;
            continue;
        };
        let past = Past::deserialize(record).map_err(wrong)?;
        let Some(again) = other.compare(past) else {
            counts.not_decided += 1;
            continue;
        };
        counts.count(&again);
        if !differences || again.result == Compared::Differs {
            terminal::line(&if cli.settings.json { json(&again)? } else { again.describe() });
        }
    }
    terminal::line(&if cli.settings.json { json(&Summary { counts: &counts })? } else { counts.describe() });
    Ok(if counts.differ.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Returns the record of a call in a line: alone, inside another object, or under the name of its kind. `None` for any
/// other record.
fn call(line: Value) -> Option<Value> {
    let Value::Object(mut members) = line else { return None };
    let other = members.get("kind").is_some_and(|kind| kind != "call");
    if members.contains_key("tool_call_id") && !other {
        return Some(Value::Object(members));
    }
    ["record", "call", "entry"].iter().find_map(|key| members.remove(*key)).filter(|_| !other).and_then(call)
}

/// The other policy, and the labels that runs have under it.
struct Other {
    catalog: Arc<ToolCatalog>,
    policy: ToolPolicy,
    party: Party,
    given: Vec<Arc<str>>,
    /// The labels that each run has under this policy. The results of the run's earlier calls add labels.
    labels: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl Other {
    /// Decides a call again; `None` if its record has no decision of a policy.
    fn compare(&mut self, past: Past) -> Option<Again> {
        let before = past.decision.clone()?;
        let catalog = Arc::clone(&self.catalog);
        let (result, now) = match catalog.policy_resource(&past.name) {
            None => (Compared::UnknownTool, None),
            Some(tool) => {
                let now = self.decide(&past, &tool);
                self.label(&past, &tool);
                let result = match &now {
                    None => Compared::Undecided,
                    Some(now) if now.verdict == before.verdict => Compared::Same,
                    Some(_) => Compared::Differs,
                };
                (result, now)
            }
        };
        Some(Again { run: past.run_id, call: past.tool_call_id, tool: past.name, result, before, now })
    }

    /// Adds the labels of the tool's result to the run, if the tool ran.
    fn label(&mut self, past: &Past, tool: &PolicyResource<'_>) {
        if !past.executed {
            return;
        }
        let labels = self.labels.entry(Arc::clone(&past.run_id)).or_insert_with(|| self.given.clone());
        for label in self.policy.labels_of(tool) {
            if labels.iter().all(|known| **known != *label) {
                labels.push(label.into());
            }
        }
    }

    /// Returns the decision under this policy; `None` if the record does not contain enough to decide.
    fn decide(&self, past: &Past, tool: &PolicyResource<'_>) -> Option<Decision> {
        let roles: Vec<_> = past.roles.iter().chain(&self.party.roles).cloned().collect();
        let context = PolicyContext {
            run: &past.run_id,
            caller: &past.caller,
            principal: past.principal.as_deref(),
            attributes: &past.attributes,
            tenant: past.tenant.as_deref(),
            roles: &roles,
            labels: self.labels.get(&past.run_id).unwrap_or(&self.given),
            tools: None,
        };
        let resource = tool.repaired(past.repair.is_some());
        let sensitive = self.catalog.get(tool.name).map(|spec| &*spec.sensitive).unwrap_or_default();
        let admitted = self.policy.admit(&context, &resource);
        if admitted.verdict == tool_runtime::call::Verdict::Deny || !self.policy.reads_arguments(resource.name) {
            return Some(admitted);
        }
        match &past.arguments {
            PastArguments::Masked(arguments)
                if !sensitive.iter().any(|name| self.policy.reads_argument(resource.name, name)) =>
            {
                Some(self.policy.decide(&context, &resource, arguments.get()))
            }
            _ => None,
        }
    }
}

impl Again {
    fn describe(&self) -> String {
        let Self { run, call, tool, before, now, result } = self;
        let (word, now) = match (result, now) {
            (Compared::UnknownTool, _) => ("unknown", "the tool no longer exists".to_owned()),
            (_, None) => ("undecided", "the policy reads an argument that the record does not show".to_owned()),
            (Compared::Differs, Some(now)) => ("differs", describe(now)),
            (_, Some(now)) => ("same", describe(now)),
        };
        terminal::safe(&format!("{word:<9}  {run} {call} {tool}: {} -> {now}", describe(before)))
    }
}

/// The last line that `--json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    counts: &'a Counts,
}

impl Counts {
    fn count(&mut self, again: &Again) {
        self.calls += 1;
        match (again.result, &again.now) {
            (Compared::Same, _) => self.same += 1,
            (Compared::UnknownTool, _) => self.unknown_tools += 1,
            (Compared::Differs, Some(now)) => {
                *self.differ.entry(format!("{} -> {}", again.before.verdict, now.verdict)).or_default() += 1;
            }
            (Compared::Undecided | Compared::Differs, _) => self.undecided += 1,
        }
    }

    fn describe(&self) -> String {
        let Self { calls, same, undecided, unknown_tools, not_decided, differ } = self;
        let differ: Vec<_> = differ.iter().map(|(change, count)| format!("{count} {change}")).collect();
        let differ = if differ.is_empty() { "0 differ".to_owned() } else { differ.join(", ") };
        let rest =
            format!("{undecided} undecided, {unknown_tools} of unknown tools, {not_decided} lines without a decision");
        format!("{calls} calls: {same} the same, {differ}, {rest}")
    }
}

/// Returns a decision as text: the verdict and its rule.
fn describe(decision: &Decision) -> String {
    format!("{} ({})", decision.verdict, decision.rule)
}
