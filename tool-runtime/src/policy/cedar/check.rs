//! Compares policies with a catalog: names, attributes and types.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cedar_policy::ffi::DetailedError;
use cedar_policy::{Policy, Schema, ValidationMode, Validator};

use crate::error::Problem;
use crate::policy::cedar::kind::Kind;
use crate::policy::cedar::parse::describe;
use crate::policy::cedar::schema::{self, Described};
use crate::policy::cedar::{CedarRules, on_own_stack};
use crate::policy::label::LabelRule;
use crate::policy::problem::missing_tool;
use crate::text::nearest;
use crate::tool::{self, ToolEffect, ToolSpec, is_discovered};

/// The tools of a catalog, each with the effect that the policy gives it.
type Checked<'a> = HashMap<&'a str, (&'a ToolSpec, ToolEffect)>;

impl CedarRules {
    /// Returns the names, attributes and types in the policies that do not fit the catalog.
    pub(crate) fn check(&self, labels: &BTreeMap<String, LabelRule>, tools: &Checked<'_>) -> Vec<Problem> {
        let failed = || vec![Problem::policy("cedar".to_owned(), "the Cedar engine failed on the policies".to_owned())];
        on_own_stack(|| {
            let mut problems = self.unknown_names(labels, tools);
            problems.extend(self.validate(tools));
            problems
        })
        .unwrap_or_else(failed)
    }

    fn unknown_names(&self, labels: &BTreeMap<String, LabelRule>, tools: &Checked<'_>) -> Vec<Problem> {
        let (mut problems, mut unlinked) = (Vec::new(), BTreeSet::new());
        for rule in self.0.all.policies() {
            for name in named(rule, "Tool").filter(|name| !is_discovered(name) && !tools.contains_key(name.as_str())) {
                let (message, nearest) = missing_tool(&name, tools.keys().copied(), &mut unlinked);
                problems.push(Problem::policy(format!("cedar.{}", rule.id()), message).with_nearest(nearest));
            }
        }
        let known: BTreeSet<_> = labels.keys().map(String::as_str).chain([LabelRule::UNTRUSTED]).collect();
        for label in self.labels().iter().filter(|label| !known.contains(label.as_str())) {
            let message = format!("nothing puts the label `{label}` on a run; add `[labels.{label}]` with its source");
            let nearest = nearest(label, known.iter().copied()).map(str::to_owned);
            problems.push(Problem::policy("cedar".to_owned(), message).with_nearest(nearest));
        }
        problems
    }

    fn validate(&self, tools: &Checked<'_>) -> Vec<Problem> {
        let mut described: Vec<_> = tools
            .values()
            .map(|(spec, effect)| Described {
                name: spec.name.as_str(),
                effect: Some(*effect),
                arguments: Kind::arguments(&tool::Schema::to_value(&spec.input_schema), |_| true),
            })
            .collect();
        // A discovered tool has no known arguments until its server lists it.
        let waiting: BTreeSet<String> = self.0.all.policies().flat_map(|rule| named(rule, "Action")).collect();
        let waiting = waiting.iter().filter(|name| is_discovered(name) && !tools.contains_key(name.as_str()));
        described.extend(waiting.map(|name| Described {
            name,
            effect: None,
            arguments: Kind::arguments(&serde_json::Value::Null, |_| true),
        }));
        let schema = match Schema::from_json_value(schema::of(self.attributes().iter(), described.into_iter())) {
            Ok(schema) => schema,
            Err(error) => {
                let message = format!("the Cedar schema of the catalog is invalid: {error}");
                return vec![Problem::policy("cedar".to_owned(), message)];
            }
        };
        let found = Validator::new(schema).validate(&self.0.all, ValidationMode::Strict);
        let errors = found.validation_errors().map(|error| (error.policy_id(), DetailedError::from(error)));
        let warnings = found.validation_warnings().map(|warning| (warning.policy_id(), DetailedError::from(warning)));
        let problem = |(id, error): (&cedar_policy::PolicyId, DetailedError)| {
            Problem::policy(format!("cedar.{id}"), describe(&error))
        };
        let mut problems: Vec<_> = errors.chain(warnings).map(problem).collect();
        problems.sort_by(|one, other| (one.path(), one.message()).cmp(&(other.path(), other.message())));
        problems
    }
}

/// Returns the ids of all entities of the type `of` in a policy.
fn named(policy: &Policy, of: &str) -> impl Iterator<Item = String> {
    let literals = policy.entity_literals().into_iter();
    literals.filter(move |uid| uid.type_name().to_string() == of).map(|uid| uid.id().unescaped().to_owned())
}
