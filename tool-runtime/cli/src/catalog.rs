//! `list`, `show` and `export`: print the catalog under the policy. They run no tool and open no data.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tool_runtime::call::{Decision, Verdict};
use tool_runtime::catalog::{Pick, PickIndex, PickOptions};
use tool_runtime::policy::{PolicyContext, PolicyResource};
use tool_runtime::wire::{EncodeOptions, Format};
use tool_runtime::{ToolCatalog, ToolPolicy, ToolSpec};

use crate::exit::{Exit, Failure};
use crate::session::{Cli, Party};
use crate::terminal::json;
use crate::text::nearest;
use crate::values::Form;
use crate::{table, terminal, tree};

#[derive(Serialize)]
struct ToolRow<'a> {
    name: &'a str,
    /// The effect that the policy assigns to the tool.
    effect: &'a str,
    execution: &'a str,
    decision: &'a str,
    rule: String,
    /// The code of the reason why no call of the tool can run, even if the policy allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unready: Option<&'static str>,
    hash: String,
    source: String,
}

/// Returns the policy's decision whether the model in a run of this party sees the tool.
fn visibility(policy: &ToolPolicy, party: &Party, tool: &PolicyResource<'_>) -> Decision {
    let context = PolicyContext {
        principal: party.principal.as_deref(),
        tenant: party.tenant.as_deref(),
        roles: &party.roles,
        attributes: &party.attributes,
        ..PolicyContext::default()
    };
    policy.admit(&context, tool)
}

pub(super) fn list(cli: &Cli<'_>) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let policy = cli.checked_policy(&catalog)?;
    let party = cli.party();
    let mut rows = Vec::new();
    for spec in catalog.specs() {
        let tool = catalog.policy_resource(spec.name.as_str()).unwrap_or_else(|| PolicyResource::of(spec));
        rows.push(row(&catalog, spec, &policy, visibility(&policy, &party, &tool)));
    }
    if cli.settings.json {
        terminal::line(&json(&rows)?);
        return Ok(Exit::Done);
    }
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let allows = row.decision != Verdict::Deny.as_str();
            let decision = row.unready.filter(|_| allows).map(|why| format!("{} ({why})", row.decision));
            let decision = decision.as_deref().unwrap_or(row.decision);
            [row.name, row.effect, row.execution, decision, &row.hash[..12], &row.source].map(ToOwned::to_owned)
        })
        .collect();
    table::print(["NAME", "EFFECT", "EXECUTION", "DECISION", "HASH", "SOURCE"], &cells);
    Ok(Exit::Done)
}

fn row<'a>(catalog: &ToolCatalog, spec: &'a ToolSpec, policy: &ToolPolicy, decision: Decision) -> ToolRow<'a> {
    let name = spec.name.as_str();
    ToolRow {
        name,
        effect: policy.effect_of(name, spec.effect).as_str(),
        execution: if spec.is_client() { "client" } else { "server" },
        decision: decision.verdict.as_str(),
        rule: decision.rule.into_owned(),
        unready: catalog.unready(policy, name).map(|why| why.code()),
        hash: spec.definition_hash.to_string(),
        source: catalog.location(name).unwrap_or_else(|| "dynamic".to_owned()),
    }
}

/// Prints a definition as a tree, or with `--json` or `--as` as data.
pub(super) fn show(cli: &Cli<'_>, name: &str, format: Option<Form>, strict: bool) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let (Some(spec), Some(tool)) = (catalog.get(name), catalog.policy_resource(name)) else {
        return Err(unknown(&catalog, name));
    };
    let policy = cli.checked_policy(&catalog)?;
    let Decision { verdict, rule } = visibility(&policy, &cli.party(), &tool);
    match format {
        None if !cli.settings.json => tree(&catalog, spec, &policy, verdict),
        None | Some(Form::Spec) => {
            let shown = serde_json::to_value(spec).map_err(|error| Failure::failed(error.to_string()))?;
            pretty(&shown)?;
        }
        Some(Form::Provider(format)) => encode(format, [spec], strict)?,
    }
    if verdict != Verdict::Allow {
        let why = cli.command("policy explain", (name, ""), &cli.same_party());
        terminal::note(&format!("policy: {verdict} ({rule}); why: {why}"));
    }
    Ok(Exit::Done)
}

/// Prints a definition as a tree.
fn tree(catalog: &ToolCatalog, spec: &ToolSpec, policy: &ToolPolicy, verdict: Verdict) {
    let name = spec.name.as_str();
    let title = spec.title.as_deref().map(|title| format!("  {}", terminal::safe(title))).unwrap_or_default();
    terminal::line(&terminal::bold(&format!("{name}{title}")));
    for paragraph in spec.description.lines() {
        terminal::line(format!("  {}", terminal::safe(paragraph)).trim_end());
    }
    let source = catalog.location(name).unwrap_or_else(|| "dynamic".to_owned());
    let (effect, place) = (policy.effect_of(name, spec.effect), if spec.is_client() { "client" } else { "server" });
    terminal::line(&format!("  {effect}, runs on the {place}, policy: {verdict}, {source}"));
    if let Some(key) = effect_key(spec) {
        terminal::line(&format!("  {key}"));
    }
    for sentence in &spec.summary {
        terminal::line(&format!("  asks a person: {}", terminal::safe(sentence)));
    }
    if catalog.has_precondition(name) {
        terminal::line("  has a precondition: an approval counts only for the state of the world that was shown");
    }
    let print = |heading: [&str; 3], rows: &[tree::TreeRow]| {
        terminal::line("");
        if rows.is_empty() { terminal::line(&format!("{}: none", heading[0])) } else { table::print(heading, rows) }
    };
    let redaction = policy.redaction_of(spec);
    print(["ARGUMENT", "TYPE", "NOTE"], &tree::arguments(spec));
    print(["OUTPUT", "TYPE", "SHOWN TO"], &tree::output(spec, &redaction));
    if !redaction.prepare.is_empty() {
        terminal::line("");
        terminal::line(&format!("sent to the client: {}", redaction.prepare.join(", ")));
    }
}

/// Returns the effect key of a tool, with its scope and the time for which it keeps the result.
fn effect_key(spec: &ToolSpec) -> Option<String> {
    let (key, scope, keep) = spec.once()?;
    let time = keep.map_or_else(|| "forever".to_owned(), |keep| format!("for {}", span(keep)));
    Some(format!("effect key `{}`, once {}, kept {time}", terminal::safe(key), scope_words(scope)))
}

/// Returns where an effect key applies: `in a tenant`, `for each principal`, `in a run`.
pub(super) fn scope_words(scope: &str) -> String {
    if scope == "principal" { "for each principal".to_owned() } else { format!("in a {scope}") }
}

/// Returns a time in the largest unit that divides it, such as `90m`: the notation of the tool attribute `once_for`.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length && seconds.is_multiple_of(*length));
    let (length, letter) = unit.unwrap_or((1, "s"));
    format!("{}{letter}", seconds / length)
}

pub(super) fn unknown(catalog: &ToolCatalog, name: &str) -> Failure {
    let names: Vec<_> = catalog.specs().map(|spec| spec.name.as_str()).collect();
    let shown = terminal::safe(name);
    let meant = match nearest(name, names.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the tools are: {}", names.join(", ")),
    };
    Failure::usage(format!("there is no tool `{shown}`; {meant}")).code("unavailable")
}

/// Prints the parts of a provider's request that offer the visible tools, or only the tools that fit a user's request.
pub(super) fn export(
    cli: &Cli<'_>,
    format: Format,
    strict: bool,
    picked: Option<(&str, PickOptions)>,
) -> Result<Exit, Failure> {
    let catalog = cli.catalog()?;
    let visible = Visible::of(cli, &catalog)?;
    let specs: Vec<_> = match picked {
        None => visible.specs().collect(),
        Some((query, options)) => {
            let picks = visible.pick(query, &options);
            if picks.is_empty() {
                terminal::note("no tool fits");
            }
            picks.iter().filter_map(|pick| catalog.get(pick.name.as_str())).collect()
        }
    };
    encode(format, specs, strict)?;
    Ok(Exit::Done)
}

/// The tools of a catalog that the policy shows to the model of this party.
pub(super) struct Visible<'c> {
    specs: Vec<(&'c ToolSpec, bool)>,
    /// The index of all tools, including hidden ones, because the weight of a word depends on the number of
    /// definitions with it.
    index: PickIndex,
}

impl<'c> Visible<'c> {
    pub(super) fn of(cli: &Cli<'_>, catalog: &'c Arc<ToolCatalog>) -> Result<Self, Failure> {
        let (policy, party) = (cli.checked_policy(catalog)?, cli.party());
        let is_visible = |spec: &'c ToolSpec| {
            let tool = catalog.policy_resource(spec.name.as_str()).unwrap_or_else(|| PolicyResource::of(spec));
            visibility(&policy, &party, &tool).verdict != Verdict::Deny
        };
        let specs: Vec<_> = catalog.specs().map(|spec| (spec, is_visible(spec))).collect();
        let mut index = PickIndex::default();
        for (spec, _) in &specs {
            index.insert(spec);
        }
        Ok(Self { specs, index })
    }

    fn specs(&self) -> impl Iterator<Item = &'c ToolSpec> {
        self.specs.iter().filter(|(_, visible)| *visible).map(|(spec, _)| *spec)
    }

    pub(super) fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        self.index.pick(query, options, &|slot| self.is_visible(slot))
    }

    pub(super) fn unmatched(&self, query: &str) -> Vec<String> {
        self.index.unmatched(query, &|slot| self.is_visible(slot))
    }

    fn is_visible(&self, slot: usize) -> bool {
        self.specs.get(slot).is_some_and(|(_, visible)| *visible)
    }
}

/// Prints the definitions in the provider's format on stdout, and the losses of the conversion on stderr.
fn encode<'a>(format: Format, specs: impl IntoIterator<Item = &'a ToolSpec>, strict: bool) -> Result<(), Failure> {
    let encoded = format
        .encode_tools(specs, &EncodeOptions::default().with_strict(strict))
        .map_err(|error| Failure::failed(error.to_string()).code("not_encodable"))?;
    pretty(&encoded.body.into())?;
    terminal::losses(&encoded.losses);
    Ok(())
}

fn pretty(value: &serde_json::Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::line(&terminal::safe_json(&text));
    Ok(())
}

#[cfg(test)]
mod tests {
    use tool_runtime::{ToolError, definition, tool};

    use super::effect_key;

    /// Pays a refund.
    #[tool(name = "show__refund", effect = external_side_effect, redact = [], once = "refund:{payment}")]
    fn refund(
        /// The payment.
        payment: String,
    ) -> Result<(), ToolError> {
        drop(payment);
        Ok(())
    }

    /// Greets.
    #[tool(
        name = "show__greet",
        effect = external_side_effect,
        redact = [],
        once = "greeting",
        once_scope = principal,
        once_for = "36h",
    )]
    fn greet() -> Result<(), ToolError> {
        Ok(())
    }

    /// Waits.
    #[tool(name = "show__wait", effect = state_change, redact = [], once = "wait", once_scope = run, once_for = "90m")]
    fn wait() -> Result<(), ToolError> {
        Ok(())
    }

    /// Reads.
    #[tool(name = "show__read", effect = read_only, redact = [])]
    fn read() -> Result<(), ToolError> {
        Ok(())
    }

    #[test]
    fn an_effect_key_is_shown_with_its_scope_and_time() {
        let shown = |spec: Result<tool_runtime::ToolSpec, tool_runtime::error::BuildError>| {
            effect_key(&spec.expect("a definition"))
        };
        let refund = "effect key `refund:{payment}`, once in a tenant, kept forever";
        assert_eq!(shown(definition!(refund)).as_deref(), Some(refund));
        let greet = "effect key `greeting`, once for each principal, kept for 36h";
        assert_eq!(shown(definition!(greet)).as_deref(), Some(greet));
        assert_eq!(shown(definition!(wait)).as_deref(), Some("effect key `wait`, once in a run, kept for 90m"));
        assert_eq!(shown(definition!(read)), None);
    }
}
