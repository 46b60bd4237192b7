//! `policy explain`: prints the rule that decides on a tool at each of the three stages.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tool_runtime::call::{Caller, Decision, Verdict};
use tool_runtime::policy::PolicyContext;
use tool_runtime::{ToolCatalog, ToolPolicy};

use crate::exit::{Exit, Failure};
use crate::frozen::frozen;
use crate::policy::why;
use crate::session::Cli;
use crate::terminal::json;
use crate::text::nearest;
use crate::written::PolicyFile;
use crate::{catalog, input, terminal, values};

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The name of the tool
    pub(crate) name: String,
    /// A label of the run; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// The caller: `direct` or `graph:NAME`
    #[arg(long, value_name = "CALLER", default_value = "direct", value_parser = values::caller)]
    pub(super) caller: Caller,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
}

/// A stage as `--json` prints it.
#[derive(Serialize)]
struct Stage {
    #[serde(rename = "stage")]
    name: &'static str,
    #[serde(flatten)]
    decided: Rule,
    /// Other rules that deny the call or require an approval.
    also: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    verdict: Verdict,
    #[serde(rename = "rule")]
    name: String,
    why: String,
}

#[derive(Serialize)]
struct Cause {
    code: &'static str,
    why: String,
}

#[derive(Serialize)]
struct Noticed {
    events: Vec<String>,
    arguments: Vec<String>,
}

#[derive(Serialize)]
struct Explained<'a> {
    tool: &'a str,
    effect: &'a str,
    stages: Vec<Stage>,
    /// The required number of different deciders, if the policy requires several.
    #[serde(skip_serializing_if = "Option::is_none")]
    required_approvals: Option<u32>,
    /// The notices about calls of the tool, if the policy enables them.
    #[serde(skip_serializing_if = "Option::is_none")]
    notices: Option<Noticed>,
    /// The reason why no call of the tool can run, even if all stages allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unready: Option<Cause>,
    /// Notes on unknown names in the request, such as a label that no rule names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub(super) fn explain(cli: &Cli<'_>, asked: &Explain) -> Result<Exit, Failure> {
    let found = cli.catalog()?;
    let (Some(spec), Some(tool)) = (found.get(&asked.name), found.policy_resource(&asked.name)) else {
        return Err(catalog::unknown(&found, &asked.name));
    };
    let policy = cli.checked_policy(&found)?;
    let (party, labels) = (cli.party(), values::shared(&asked.labels));
    // The visible tools are chosen before any result can add a label, so at that stage a run has only the labels that
    // the application sets (`from_run`).
    let written = PolicyFile::of(&policy)?;
    let from_run = |label: &&Arc<str>| written.label(label, "from_run") == Some(&true.into());
    let first: Vec<_> = labels.iter().filter(from_run).cloned().collect();
    let context = PolicyContext {
        caller: &asked.caller,
        principal: party.principal.as_deref(),
        attributes: &party.attributes,
        tenant: party.tenant.as_deref(),
        roles: &party.roles,
        labels: &labels,
        ..PolicyContext::default()
    };
    let unready = found.unready(&policy, &asked.name);
    let stage = |name, context: &PolicyContext<'_>, repaired: bool, arguments: Option<&str>| {
        let (decision, heard) = policy.explain(context, &tool.repaired(repaired), arguments);
        let rule = |decision: Decision| {
            let why = why::of(&decision, &policy, &written, (spec, unready.as_ref()), asked);
            Rule { verdict: decision.verdict, name: decision.rule.into_owned(), why }
        };
        let also = heard.into_iter().filter(|other| *other != decision).map(rule).collect();
        Stage { name, decided: rule(decision), also }
    };
    let mut stages = vec![
        stage("visibility", &PolicyContext { labels: &first, ..context }, false, None),
        stage("admission", &context, false, None),
    ];
    if let Some(given) = &asked.arguments {
        let frozen = frozen(&found, &policy, &asked.name, &input::json_text(given)?)?;
        stages.push(stage("arguments", &context, frozen.repaired, Some(&frozen.text)));
    }
    let name = spec.name.as_str();
    let effect = policy.effect_of(name, spec.effect);
    let asking = |rule: &&Rule| rule.verdict == Verdict::RequireApproval;
    let rules = stages.iter().flat_map(|stage| std::iter::once(&stage.decided).chain(&stage.also)).filter(asking);
    let required = policy.required_approvals(name, effect, rules.clone().map(|rule| &*rule.name));
    let required_approvals = rules.clone().next().map(|_| required).filter(|required| *required > 1);
    let effect = effect.as_str();
    let unready = unready.as_ref().map(|why| Cause { code: why.code(), why: why.to_string() });
    // The exit code is the one that the call itself would have.
    let exit = match stages.iter().map(|stage| exit(stage.decided.verdict)).max().unwrap_or(Exit::Done) {
        Exit::Denied => Exit::Denied,
        _ if unready.is_some() => Exit::Failed,
        exit => exit,
    };
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    let notices = written.notices(name);
    let notices = notices.map(|(events, arguments)| Noticed { events: owned(events), arguments: owned(arguments) });
    let notes = unknown(asked, &found, &policy);
    let explained = Explained { tool: name, effect, stages, required_approvals, notices, unready, notes };
    if cli.settings.json {
        terminal::line(&json(&explained)?);
    } else {
        print(&explained);
        explained.notes.iter().for_each(|note| terminal::note(&terminal::safe(note)));
        if asked.arguments.is_none() {
            terminal::note("rules about arguments were not evaluated; add --arguments JSON");
        }
    }
    Ok(exit)
}

fn print(explained: &Explained<'_>) {
    terminal::line(&terminal::safe(&format!("{} ({})", explained.tool, explained.effect)));
    for stage in &explained.stages {
        let Rule { verdict, name, why } = &stage.decided;
        terminal::line(&terminal::safe(&format!("{:<12}{verdict:<18}{name}: {why}", stage.name)));
        for Rule { verdict, name, why } in &stage.also {
            terminal::line(&terminal::safe(&format!("{:<12}{verdict:<18}{name}: {why}", "  also")));
        }
    }
    if let Some(required) = explained.required_approvals {
        let text = format!("{:<12}{:<18}{required} different deciders have to approve it", "the call", "approvals");
        terminal::line(&text);
    }
    if let Some(Noticed { events, arguments }) = &explained.notices {
        let listed =
            if arguments.is_empty() { String::new() } else { format!("; with the arguments {}", arguments.join(", ")) };
        let text = format!("{:<12}{:<18}{}{listed}", "the call", "notices", events.join(", "));
        terminal::line(&terminal::safe(&text));
    }
    if let Some(Cause { code, why }) = &explained.unready {
        terminal::line(&terminal::safe(&format!("{:<12}{:<18}{code}: {why}", "the call", "cannot run")));
    }
}

/// Returns notes on labels and graphs that neither the policy nor the application knows. They have no effect, and may
/// be typing errors.
fn unknown(asked: &Explain, catalog: &ToolCatalog, policy: &ToolPolicy) -> Vec<String> {
    let meant = |wrong: &str, names: &BTreeSet<&str>| {
        let nearest = nearest(wrong, names.iter().copied());
        nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    };
    let named = policy.named_labels();
    let labels = asked.labels.iter().filter(|label| !named.contains(label.as_str()));
    let mut notes: Vec<_> =
        labels.map(|label| format!("no rule names the label `{label}`{}", meant(label, &named))).collect();
    if let Caller::Graph { name, .. } = &asked.caller {
        let graphs = catalog.specs().filter_map(|spec| spec.name.as_str().strip_prefix("graph__"));
        let known: BTreeSet<_> = policy.named_graphs().chain(graphs).collect();
        if !known.contains(name.as_str()) {
            notes.push(format!(
                "neither the application nor a rule knows a graph `{name}`, so only rules about all graphs count{}",
                meant(name, &known)
            ));
        }
    }
    notes
}

const fn exit(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Allow => Exit::Done,
        Verdict::RequireApproval => Exit::ApprovalRequired,
        _ => Exit::Denied,
    }
}
