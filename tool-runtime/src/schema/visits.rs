//! Limits how often a validator may visit one value. Alternatives at the same place multiply the visits at each level,
//! so recursion and shared definitions can lead to exponential time.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::{Problem, SchemaProblemKind};
use crate::schema::graph::{Document, Target, address};
use crate::schema::positions::subschemas;

/// The maximum number of visits along one path from the root of a value to a leaf.
const MAX_VISITS: u64 = 5_000;

/// The maximum depth of a value. Arguments and outputs have their own limits of depth.
const LEVELS: usize = 64;

/// The maximum number of steps that counting one document may take.
const BUDGET: usize = 500_000;

/// The approximate number of visits by a meta-schema.
const BUILT_IN: u64 = 100;

/// Returns an error if the validation of a value may take more than linear time.
pub(crate) fn check<'a>(document: &Document<'a>, root: &'a Value) -> Result<(), Problem> {
    let mut visits = Visits { document, here: HashMap::new(), known: HashMap::new(), budget: BUDGET };
    match visits.count(root, LEVELS) {
        Ok(looks) if looks <= MAX_VISITS => Ok(()),
        Err(Stop::Loop) => {
            let message = "references lead back to themselves for the same value";
            Err(Problem::schema("", message, "remove the circle").of_kind(SchemaProblemKind::Reference))
        }
        _ => Err(Problem::schema(
            "",
            "alternatives and references meet in the same place so often that checking a value would take too long",
            "let each member of a value be described once, or write recursion as a flat list",
        )
        .of_kind(SchemaProblemKind::Depth)),
    }
}

enum Stop {
    Loop,
    Budget,
}

/// The number of visits of one value by a schema and by the schemas that it applies to the same value, and the schemas
/// that all of these apply to the members of the value.
#[derive(Clone)]
struct Here<'a> {
    visits: u64,
    edges: Vec<(Label<'a>, &'a Value)>,
}

/// The members of a value that a schema applies to.
#[derive(Clone, Copy)]
enum Label<'a> {
    Key(&'a str),
    /// All keys except these.
    OtherKeys(Option<&'a Map<String, Value>>),
    Item(usize),
    /// Items from this index on.
    OtherItems(usize),
    KeyText,
}

struct Visits<'a, 'd> {
    document: &'d Document<'a>,
    here: HashMap<usize, Option<Here<'a>>>,
    known: HashMap<(usize, usize), u64>,
    budget: usize,
}

impl<'a> Visits<'a, '_> {
    fn spend(&mut self, amount: usize) -> Result<(), Stop> {
        self.budget = self.budget.checked_sub(amount).ok_or(Stop::Budget)?;
        Ok(())
    }

    /// Counts the visits along the worst path through a value with this many levels.
    fn count(&mut self, schema: &'a Value, levels: usize) -> Result<u64, Stop> {
        if !schema.is_object() {
            return Ok(1);
        }
        let key = (address(schema), levels);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.gather(schema)?;
        let Some(Some(here)) = self.here.get(&address(schema)) else { return Err(Stop::Loop) };
        let (visits, edges) = (here.visits, here.edges.clone());
        let mut worst = 0;
        if levels > 0 && visits <= MAX_VISITS {
            self.spend(edges.len() + 1)?;
            let mut weighted = Vec::with_capacity(edges.len());
            for (label, target) in edges {
                weighted.push((label, self.count(target, levels - 1)?));
            }
            // `worst_member` compares each pair of edges; such a step is cheap, so sixteen count as one.
            self.spend(weighted.len().saturating_mul(weighted.len()) / 16)?;
            worst = worst_member(&weighted);
        }
        let looks = visits.saturating_add(worst);
        self.known.insert(key, looks);
        Ok(looks)
    }

    /// Collects the schemas that apply to the same value.
    fn gather(&mut self, schema: &'a Value) -> Result<(), Stop> {
        let Value::Object(members) = schema else { return Ok(()) };
        match self.here.get(&address(schema)) {
            Some(Some(_)) => return Ok(()),
            // The schema is being gathered, so its references lead back to it without entering a member.
            Some(None) => return Err(Stop::Loop),
            None => {}
        }
        self.spend(1)?;
        self.here.insert(address(schema), None);
        let mut here = Here { visits: 1, edges: Vec::new() };
        let mut beside = Vec::new();
        for target in self.document.referred(members) {
            match target {
                Target::Schema(target) => beside.push(target),
                Target::BuiltIn => here.visits = here.visits.saturating_add(BUILT_IN),
            }
        }
        let listed = |key: &str| members.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        let named = members.get("properties").and_then(Value::as_object);
        for position in subschemas(members) {
            let label = match (position.keyword, position.name, position.index) {
                ("properties", Some(name), _) => Label::Key(name),
                // A pattern may match any name, so it counts for each of them.
                ("patternProperties", ..) => Label::OtherKeys(None),
                ("additionalProperties" | "unevaluatedProperties", ..) => Label::OtherKeys(named),
                ("prefixItems" | "items", _, Some(index)) => Label::Item(index),
                ("items" | "unevaluatedItems", ..) => Label::OtherItems(listed("prefixItems")),
                ("additionalItems", ..) => Label::OtherItems(listed("items")),
                ("contains", ..) => Label::OtherItems(0),
                ("propertyNames", ..) => Label::KeyText,
                // These apply to no value by themselves.
                ("$defs" | "definitions" | "contentSchema", ..) => continue,
                _ => {
                    beside.push(position.schema);
                    continue;
                }
            };
            here.edges.push((label, position.schema));
        }
        // To find unevaluated members, a validator visits the neighbouring schemas once more.
        let times = if members.keys().any(|key| key.starts_with("unevaluated")) { 2 } else { 1 };
        for schema in beside {
            if !schema.is_object() {
                here.visits = here.visits.saturating_add(1);
                continue;
            }
            self.gather(schema)?;
            let Some(Some(inner)) = self.here.get(&address(schema)) else { return Err(Stop::Loop) };
            here.visits = here.visits.saturating_add(inner.visits.saturating_mul(times));
            for _ in 0..times {
                here.edges.extend(inner.edges.iter().copied());
            }
            self.budget = self.budget.checked_sub(inner.edges.len()).ok_or(Stop::Budget)?;
            if here.visits > MAX_VISITS {
                return Err(Stop::Budget);
            }
        }
        self.here.insert(address(schema), Some(here));
        Ok(())
    }
}

/// Returns the number of visits to the member of a value that is visited most.
fn worst_member(edges: &[(Label<'_>, u64)]) -> u64 {
    let sum = |applies: &dyn Fn(&Label<'_>) -> bool| {
        edges.iter().filter(|(label, _)| applies(label)).fold(0_u64, |sum, (_, looks)| sum.saturating_add(*looks))
    };
    edges.iter().fold(0, |worst, (label, _)| {
        let looks = match *label {
            Label::Key(key) => sum(&|other| match other {
                Label::Key(other) => *other == key,
                Label::OtherKeys(named) => !named.is_some_and(|named| named.contains_key(key)),
                _ => false,
            }),
            Label::OtherKeys(_) => sum(&|other| matches!(other, Label::OtherKeys(_))),
            Label::Item(index) => sum(&|other| match other {
                Label::Item(other) => *other == index,
                Label::OtherItems(from) => *from <= index,
                _ => false,
            }),
            Label::OtherItems(_) => sum(&|other| matches!(other, Label::OtherItems(_))),
            Label::KeyText => sum(&|other| matches!(other, Label::KeyText)),
        };
        worst.max(looks)
    })
}
