//! Prints waiting calls: as a table, as JSON, and a single one as text.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use tool_runtime::call::{ArgumentChange, ArgumentDigest, Decider, JsonText, NamedArgument, Question, Suspension};
use tool_runtime::store::PendingCall;
use tool_runtime::{ToolCatalog, ToolEffect, ToolPolicy};

use crate::approvals::waiting;
use crate::approvals::waiting::{DecidedIn, LocatedCall};
use crate::describe::{ShownCall, describe};
use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::terminal::json;
use crate::text::{on_one_line, option};
use crate::{table, terminal};

/// A waiting call as `approvals list --json` prints it.
#[derive(Serialize)]
struct WaitingRow<'a> {
    id: &'a str,
    /// The current question: the call's id with a digest of the details that a person is shown. The commands
    /// that decide accept it in place of the call's id, and then refuse the decision if the details have changed.
    question: Question,
    run: &'a str,
    /// The id of the saved document in the data folder; `None` if the call is in a run of the store.
    conversation: Option<&'a str>,
    /// The title of the document.
    title: Option<&'a str>,
    tool: &'a str,
    /// If the call is a graph, the path of the inner call for which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    waits_for: Suspension,
    rule: Option<&'a str>,
    principal: Option<&'a str>,
    tenant: Option<&'a str>,
    created_at: String,
    expires_at: String,
    /// Whether the time for a decision is over.
    expired: bool,
    /// Whether a decision was posted and no process has carried it out yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    decided: bool,
    arguments: Option<JsonText>,
    /// The required number of different deciders; `None` if one is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<u32>,
    /// The deciders who have approved the call so far. Empty if one decider is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approved_by: Vec<&'a str>,
    /// The author's sentence that describes the call's effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

/// A waiting call with all its details, as `approvals show --json` prints it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    row: WaitingRow<'a>,
    argument_digest: Option<ArgumentDigest>,
    changes: &'a [ArgumentChange],
    names: &'a [NamedArgument],
    labels: &'a [Arc<str>],
    deciders: Option<Deciders<'a>>,
}

/// The principals who may decide on a call.
#[derive(Serialize)]
struct Deciders<'a> {
    tenant: Option<&'a str>,
    /// The roles, one of which a decider needs; `None` if the policy requires no role.
    roles: Option<&'a BTreeSet<String>>,
    /// The principals who may decide; `None` if the policy names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    principals: Option<&'a BTreeSet<String>>,
    /// Whether the principal of the run may decide.
    own_calls: bool,
    /// The principal of the run.
    #[serde(skip)]
    principal: Option<&'a str>,
}

impl<'a> WaitingRow<'a> {
    fn of(found: &'a LocatedCall) -> Self {
        let call = &found.call;
        let (conversation, title) = match &found.place {
            DecidedIn::Document { id, title } => (Some(id.as_str()), Some(title.as_str())),
            DecidedIn::Run(_) | DecidedIn::Elsewhere => (None, None),
        };
        Self {
            id: call.call_id.as_str(),
            question: call.question(),
            run: &call.run_id,
            conversation,
            title,
            tool: call.tool.as_str(),
            waits_for: call.suspension,
            path: call.graph.as_ref().map(|graph| &*graph.path),
            rule: ShownCall::of(call).rule,
            principal: call.principal.as_deref(),
            tenant: call.tenant.as_deref(),
            created_at: format!("{:.0}", call.created_at),
            expires_at: format!("{:.0}", call.expires_at),
            expired: call.is_expired(found.now),
            decided: matches!(&found.place, DecidedIn::Run(run) if run.is_answered(&call.question())),
            arguments: match &call.graph {
                Some(graph) => graph.shown_arguments.clone(),
                None => Some(call.shown_arguments.clone()),
            },
            required: Some(call.approvals().1).filter(|required| *required > 1),
            approved_by: approved_by(call),
            summary: ShownCall::of(call).summary,
        }
    }

    /// Returns the text of the column `WAITS FOR`: a person, several people, the client, or the process that carries
    /// out the decision.
    fn waits_for(&self) -> String {
        match (self.waits_for, self.required) {
            _ if self.decided => "its process (decided)".to_owned(),
            (Suspension::Approval, Some(required)) => progress(&self.approved_by, required),
            (Suspension::Approval, None) => "a person".to_owned(),
            _ => "its client".to_owned(),
        }
    }
}

/// Runs `approvals list`.
pub(super) async fn list(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let (found, exit) = waiting::all(cli).await?;
    let mut rows: Vec<_> = found.iter().map(WaitingRow::of).collect();
    rows.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    let heading = ["CALL", "TOOL", "WAITS FOR", "EXPIRES", "CONVERSATION", "WHAT"];
    table::list(cli, &rows, "no call waits", heading, |row| {
        let waits_for = row.waits_for();
        let expires = if row.expired { "expired" } else { &row.expires_at };
        let what = on_one_line(row.summary.unwrap_or_default());
        [row.id, row.tool, &waits_for, expires, row.conversation.unwrap_or(row.run), &what].map(terminal::safe)
    })?;
    Ok(exit)
}

/// Returns the principals who have approved the call so far.
fn approved_by(call: &PendingCall) -> Vec<&str> {
    call.approvals().0.iter().map(Decider::principal).collect()
}

/// Returns the state of a call that needs several approvals: `2 people: 1 of 2, by ada`.
fn progress(approved_by: &[&str], required: u32) -> String {
    let by = if approved_by.is_empty() { String::new() } else { format!(", by {}", approved_by.join(", ")) };
    format!("{required} people: {} of {required}{by}", approved_by.len())
}

/// Runs `approvals show`. `unmask` also prints sensitive arguments.
pub(super) async fn show(cli: &Cli<'_>, id: &str, unmask: bool) -> Result<Exit, Failure> {
    let found = waiting::find(cli, id).await?;
    let (call, catalog, policy) = (&found.call, cli.catalog()?, cli.policy()?);
    let deciders = (call.suspension == Suspension::Approval).then(|| Deciders::of(&catalog, &policy, call));
    if cli.settings.json {
        let mut row = WaitingRow::of(&found);
        // The arguments of a graph or script are not the arguments of the inner call that waits.
        if unmask
            && call.graph.is_none()
            && let Ok(whole) = RawValue::from_string(call.arguments().to_owned())
        {
            row.arguments = Some(whole.into());
        }
        let (ShownCall { changes, names, .. }, labels) = (ShownCall::of(call), &*call.labels);
        let whole = Whole { row, argument_digest: call.record_digest, changes, names, labels, deciders };
        terminal::line(&json(&whole)?);
        return Ok(Exit::Done);
    }
    terminal::line(&terminal::bold(&format!("{} {}", terminal::safe(call.tool.as_str()), call.call_id)));
    describe((&catalog, &policy), call, unmask).iter().for_each(|line| terminal::line(line));
    if let Some(digest) = call.record_digest {
        terminal::line(&format!("   (arguments, digest {digest})"));
    }
    if call.suspension == Suspension::Approval {
        terminal::line(&format!("   (question {})", terminal::safe(&call.question().to_string())));
    }
    if let Some(deciders) = &deciders {
        terminal::line(&terminal::safe(&format!("   (decided by {})", deciders.describe())));
    }
    let row = WaitingRow::of(&found);
    if row.decided || row.required.is_some() {
        terminal::line(&terminal::safe(&format!("   (waits for {})", row.waits_for())));
    }
    terminal::line(&match &found.place {
        DecidedIn::Document { id, title } => format!("   (in {id}: {})", terminal::safe(title)),
        DecidedIn::Run(run) => {
            format!("   (in the run {}, {})", terminal::safe(&call.run_id), waiting::held(run, found.now))
        }
        DecidedIn::Elsewhere => {
            format!("   (in the run {}, which no worker continues)", terminal::safe(&call.run_id))
        }
    });
    Ok(Exit::Done)
}

/// Returns the deciders of a call as text, and the options of the command line for one of them. With `named`, the
/// options contain `--as`, which a decision on a run of the store needs.
pub(crate) fn who_decides(
    (catalog, policy): (&ToolCatalog, &ToolPolicy),
    call: &PendingCall,
    named: bool,
) -> (String, String) {
    let deciders = Deciders::of(catalog, policy, call);
    let mut options = String::new();
    if named || !deciders.own_calls {
        options += " --as NAME";
    }
    if let Some(role) = deciders.roles.and_then(BTreeSet::first) {
        options += &option("--role", role);
    }
    (terminal::safe(&deciders.describe()), options)
}

impl<'a> Deciders<'a> {
    fn of(catalog: &ToolCatalog, policy: &'a ToolPolicy, call: &'a PendingCall) -> Self {
        let tool = ShownCall::of(call).tool;
        // A tool that is missing from the catalog is treated as one with external effects.
        let declared = catalog.get(tool).map_or(ToolEffect::ExternalSideEffect, |spec| spec.effect);
        let effect = policy.effect_of(tool, declared);
        let (own_calls, roles) = policy.deciders(tool, effect);
        let (tenant, principal) = (call.tenant.as_deref(), call.principal.as_deref());
        Self { tenant, roles, principals: policy.decider_principals(tool, effect), own_calls, principal }
    }

    /// Returns the deciders as text: `any principal of acme with the role clerk, but not ada`.
    fn describe(&self) -> String {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" or ");
        let named = self.principals.map(list);
        let who = match self.tenant {
            Some(tenant) if named.is_some() => format!("{} of {tenant}", named.unwrap_or_default()),
            None if named.is_some() => named.unwrap_or_default(),
            Some(tenant) => format!("any principal of {tenant}"),
            None => "any principal without a tenant".to_owned(),
        };
        let roles = self.roles.map(list);
        let roles = roles.map(|roles| format!(" with the role {roles}")).unwrap_or_default();
        let but =
            self.principal.filter(|_| !self.own_calls).map(|name| format!(", but not {name}")).unwrap_or_default();
        format!("{who}{roles}{but}")
    }
}
