//! [`Party`]: the properties of a run that decide which tools it sees; the key of the cache of visible tools.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::call::Caller;
use crate::policy::cedar::CedarRules;
use crate::policy::resource::PolicyContext;
use crate::policy::run_policy::RunPolicy;
use crate::policy::tool_policy::ToolPolicy;

/// The longest description of a party, in bytes. Names come from outside, so a description can have any length.
const MOST_BYTES: usize = 16 << 10;

/// The initial capacity in bytes, which is enough for most descriptions.
const ROOM: usize = 128;

/// The properties of a run that the policy's rules can read. Runs of one party see the same tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Party(Box<str>);

impl Party {
    /// Returns the party of a run. `None` if earlier policies, or earlier roles and attributes, also apply to the run,
    /// or if the description would exceed 16 KiB, for example with hundreds of tools. Such a run does not share its
    /// list of visible tools.
    pub(crate) fn of(policy: &RunPolicy, context: &PolicyContext<'_>) -> Option<Self> {
        let policy = policy.alone()?;
        let mut key = Key(String::with_capacity(ROOM));
        tell_apart(policy, context, &mut key);
        match context.tools {
            None => key.word("all"),
            Some(tools) => key.list(tools.iter().map(AsRef::as_ref)),
        }
        (key.0.len() <= MOST_BYTES).then(|| Self(key.0.into()))
    }
}

/// Writes the properties of the run that rules can read. Tables read only the values that they name. Cedar policies can
/// read every property, but only the attributes that they name.
fn tell_apart(policy: &ToolPolicy, context: &PolicyContext<'_>, key: &mut Key) {
    let (data, all) = (policy.data(), policy.data().cedar.is_some());
    let read = policy.data().cedar.as_ref().map(CedarRules::attributes);
    match context.caller {
        Caller::Direct => key.word("direct"),
        Caller::Graph { name, .. } => {
            let named = || data.callers.keys().any(|id| id.strip_prefix("graph:") == Some(name.as_str()));
            key.list(std::iter::once("graph").chain((all || named()).then_some(name.as_str())));
        }
    }
    key.maybe(context.principal.filter(|principal| all || data.principals.contains_key(*principal)));
    key.maybe(context.tenant.filter(|tenant| all || data.tenants.contains_key(*tenant)));
    let tenant = context.tenant.and_then(|tenant| data.tenants.get(tenant));
    let is_role = |role: &str| {
        all || data.roles.contains_key(role) || tenant.is_some_and(|tenant| tenant.roles.contains_key(role))
    };
    key.set(context.roles.iter().map(|role| &**role).filter(|role| is_role(role)));
    let is_attribute = |name: &str, value: &str| {
        let of_tables = data.attributes.get(name).is_some_and(|values| values.contains_key(value));
        of_tables || read.is_some_and(|read| read.contains(name))
    };
    let attributes = context.attributes.iter().filter(|(name, value)| is_attribute(name, value));
    let attributes: BTreeSet<_> = attributes.map(|(name, value)| (&**name, &**value)).collect();
    key.list(attributes.iter().flat_map(|(name, value)| [*name, *value]));
    key.set(context.labels.iter().map(|label| &**label).filter(|label| all || data.labels.contains_key(*label)));
}

/// Words with their lengths, so that different lists never give the same text.
struct Key(String);

impl Key {
    fn word(&mut self, word: &str) {
        let _ = write!(self.0, "{}:{word}", word.len());
    }

    fn list<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        self.0.push('[');
        words.for_each(|word| self.word(word));
        self.0.push(']');
    }

    /// Writes the words sorted and without repetitions, because rules treat them as a set.
    fn set<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        self.list(words.collect::<BTreeSet<_>>().into_iter());
    }

    fn maybe(&mut self, word: Option<&str>) {
        self.list(word.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::RunTools;

    const POLICY: &str = r#"
        [roles.buyer]
        allowed_tools = ["parts__order"]
        [principals.ada]
        allowed_tools = ["parts__order"]
        [attributes.department.purchasing]
        allowed_tools = ["parts__order"]
        [tenants.acme]
        denied_tools = ["parts__order"]
        [tenants.acme.roles.head]
        allowed_tools = ["parts__order"]
        [labels.untrusted]
        deny_effects = ["state_change"]
        [callers."graph:buyer"]
        denied_tools = ["parts__order"]
    "#;

    fn words(words: &[&str]) -> Vec<Arc<str>> {
        words.iter().map(|word| (*word).into()).collect()
    }

    #[test]
    fn what_a_rule_names_makes_another_party_and_nothing_else_does() {
        let policy = RunPolicy::new(ToolPolicy::from_toml(POLICY).unwrap());
        let party = |context: PolicyContext<'_>| Party::of(&policy, &context).unwrap();
        let nobody = PolicyContext::default();
        let graph = |name: &str| Caller::Graph { run: "r".into(), name: name.into(), version: "1".into() };
        let (known, other) = (graph("buyer"), graph("seller"));
        let tools: RunTools = RunTools::from(["parts__order".into()]);
        let none = RunTools::default();
        let (buyer, head, guest) = (words(&["buyer"]), words(&["head"]), words(&["guest"]));
        let label = words(&["untrusted"]);
        let pair = |name: &str, value: &str| vec![(Arc::<str>::from(name), Arc::<str>::from(value))];
        let (department, sales) = (pair("department", "purchasing"), pair("department", "sales"));
        let different = [
            nobody,
            PolicyContext { principal: Some("ada"), ..nobody },
            PolicyContext { tenant: Some("acme"), ..nobody },
            PolicyContext { tenant: Some("acme"), roles: &head, ..nobody },
            PolicyContext { roles: &buyer, ..nobody },
            PolicyContext { attributes: &department, ..nobody },
            PolicyContext { labels: &label, ..nobody },
            PolicyContext { caller: &known, ..nobody },
            PolicyContext { caller: &other, ..nobody },
            PolicyContext { tools: Some(&tools), ..nobody },
            PolicyContext { tools: Some(&none), ..nobody },
        ];
        for (at, one) in different.iter().enumerate() {
            for (other_at, other) in different.iter().enumerate() {
                assert_eq!(party(*one) == party(*other), at == other_at, "{one:?} {other:?}");
            }
        }
        let unnamed = words(&["confidential"]);
        let another = graph("clerk");
        let (twice, turned) = (words(&["buyer", "guest", "buyer"]), words(&["guest", "buyer"]));
        for (one, same) in [
            (nobody, PolicyContext { run: "r2", principal: Some("grace"), tenant: Some("globex"), ..nobody }),
            (nobody, PolicyContext { roles: &guest, attributes: &sales, labels: &unnamed, ..nobody }),
            // A tenant's role counts in that tenant only.
            (nobody, PolicyContext { roles: &head, ..nobody }),
            (PolicyContext { roles: &twice, ..nobody }, PolicyContext { roles: &turned, ..nobody }),
            (PolicyContext { caller: &other, ..nobody }, PolicyContext { caller: &another, ..nobody }),
        ] {
            assert_eq!(party(one), party(same), "{one:?} {same:?}");
        }
    }

    #[test]
    fn no_two_lists_read_alike() {
        let policy = RunPolicy::new(ToolPolicy::deny_all());
        let party = |names: &[&str]| {
            let tools: RunTools = names.iter().map(|name| (*name).into()).collect();
            Party::of(&policy, &PolicyContext { tools: Some(&tools), ..PolicyContext::default() }).unwrap()
        };
        assert_ne!(party(&["a", "b"]), party(&["a1:b"]));
        assert_ne!(party(&["a", "b"]), party(&["ab"]));
        assert_ne!(party(&["a][1:b"]), party(&["a", "b"]));
    }

    #[test]
    fn a_run_with_more_to_it_has_no_party() {
        let current = ToolPolicy::allow(["a__b"]);
        let context = PolicyContext::default();
        assert!(Party::of(&RunPolicy::new(current.clone()), &context).is_some());
        let earlier = serde_json::from_str(r#"[{"allowed_tools":["a__c"]}]"#).unwrap();
        let held = RunPolicy::restored(current.clone(), earlier, Vec::new()).unwrap();
        assert!(Party::of(&held, &context).is_none());
        let then = serde_json::from_str(r#"[{"roles":["buyer"],"attributes":[]}]"#).unwrap();
        let held = RunPolicy::restored(current.clone(), serde_json::from_str("[]").unwrap(), then).unwrap();
        assert!(Party::of(&held, &context).is_none());
        let tools: RunTools = (0..1_000).map(|at| format!("a__tool_number_{at}").into()).collect();
        assert!(Party::of(&RunPolicy::new(current), &PolicyContext { tools: Some(&tools), ..context }).is_none());
    }
}
