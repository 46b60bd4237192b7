//! Parses Cedar text into [`Ready`], in which policies are grouped by their consequence and their inputs.

use cedar_policy::ffi::DetailedError;
use cedar_policy::{Effect, Policy, PolicyId, PolicySet};
use serde_json::Value;

use crate::policy::cedar::reads::Reads;
use crate::policy::cedar::request::Types;
use crate::policy::cedar::{Ready, Sets, nesting, on_own_stack};
use crate::text::line_column;

/// The maximum number of policies.
const MAX_POLICIES: usize = 256;

/// Parses policies.
pub(super) fn ready(text: String) -> Result<Ready, String> {
    nesting::check(&text)?;
    on_own_stack(|| parsed(text)).unwrap_or_else(|| Err("the Cedar engine failed on these policies".to_owned()))
}

/// A parsed policy. `early` is its form for a decision before arguments are read; `asks` if it requires an approval.
struct One {
    policy: Policy,
    early: Option<Policy>,
    asks: bool,
}

fn parsed(text: String) -> Result<Ready, String> {
    let set: PolicySet = text.parse().map_err(|error| {
        let error = DetailedError::from(&error);
        let place = error.source_locations.first().map(|label| line_column(&text, label.loc.start));
        let place = place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
        format!("{place}{}", describe(&error))
    })?;
    if set.templates().next().is_some() {
        return Err("a template decides nothing here; write policies without `?principal` and `?resource`".to_owned());
    }
    if set.num_of_policies() > MAX_POLICIES {
        return Err(format!("more than {MAX_POLICIES} policies; write fewer"));
    }
    let mut reads = Reads::default();
    let mut all = Vec::new();
    for number in 0..set.num_of_policies() {
        let Some(policy) = set.policy(&PolicyId::new(format!("policy{number}"))) else { continue };
        all.push(one(policy, &mut reads)?);
    }
    if !all.iter().any(|one| one.policy.effect() == Effect::Permit) {
        return Err(
            "no policy permits anything, so every call would be denied; add `permit(principal, action, resource);`"
                .to_owned(),
        );
    }
    let sets = |of: fn(&One) -> Option<&Policy>| -> Result<Sets, String> {
        let set = |asks: bool| {
            let policies = all.iter().filter(|one| one.asks == asks).filter_map(of).cloned();
            PolicySet::from_policies(policies).map_err(|_| "two policies have the same `@id`".to_owned())
        };
        Ok(Sets { decide: set(false)?, ask: set(true)? })
    };
    let named = PolicySet::from_policies(all.iter().map(|one| one.policy.clone()));
    Ok(Ready {
        frozen: sets(|one| Some(&one.policy))?,
        admission: sets(|one| one.early.as_ref())?,
        all: named.map_err(|_| "two policies have the same `@id`".to_owned())?,
        types: Types::new().ok_or("the Cedar engine refuses the names of the entity types")?,
        reads,
        text,
    })
}

fn one(policy: &Policy, reads: &mut Reads) -> Result<One, String> {
    let id = policy.annotation("id").map_or_else(|| policy.id().to_string(), str::to_owned);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if id.is_empty() || id.len() > 64 || !id.bytes().all(fits) {
        return Err(format!("the `@id` of `{}` is 1 to 64 ASCII letters, digits, `_`, `-` and `.`", policy.id()));
    }
    let mut asks = false;
    for (name, value) in policy.annotations() {
        match (name, value, policy.effect()) {
            ("id", ..) => {}
            ("approval", "required", Effect::Forbid) => asks = true,
            ("approval", "required", Effect::Permit) => {
                return Err(format!(
                    "policy `{id}`: write `@approval(\"required\")` on a `forbid`; it denies a call until a person approves"
                ));
            }
            ("approval", ..) => return Err(format!("policy `{id}`: the only value is `@approval(\"required\")`")),
            _ => {
                return Err(format!("policy `{id}`: `@{name}` decides nothing; write `@id`, `@approval` or a comment"));
            }
        }
    }
    let unread = |_| format!("policy `{id}`: the Cedar engine cannot write it as JSON");
    let mut json = policy.to_json().map_err(unread)?;
    let policy = policy.new_id(PolicyId::new(&id));
    let own = Reads::of(&policy, &json);
    let early = match (own.arguments, policy.effect()) {
        (false, _) => Some(policy.clone()),
        // A `forbid` that depends on arguments is evaluated once they are known.
        (true, Effect::Forbid) => None,
        (true, Effect::Permit) => {
            if let Some(clauses) = json.get_mut("conditions").and_then(Value::as_array_mut) {
                clauses.retain(|clause| !Reads::of_clause(clause).arguments);
            }
            Some(Policy::from_json(Some(PolicyId::new(&id)), json).map_err(|error| format!("policy `{id}`: {error}"))?)
        }
    };
    reads.add(own);
    Ok(One { policy, early, asks })
}

/// Returns an error of the engine as one sentence, with its label and help.
pub(super) fn describe(error: &DetailedError) -> String {
    let label = error.source_locations.first().and_then(|location| location.label.as_deref());
    let more = label.into_iter().chain(error.help.as_deref());
    more.fold(error.message.clone(), |describe, more| format!("{describe}; {more}"))
}
