//! A proptest strategy for the values of a schema.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy as _, any};
use proptest::sample::select;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};

use crate::testing::agreement::merged::{merged, references, without};
use crate::testing::agreement::mutants::{required, types};
use crate::testing::agreement::scalars::{self, SPREAD};
use crate::testing::agreement::texts::of_pattern;
use crate::text::pointer;

/// The maximum nesting of a schema.
const MAX_DEPTH: usize = 24;

/// The maximum number of times that a reference occurs within itself. A tree with two children doubles at each level.
const MAX_ROUNDS: usize = 2;

/// The maximum number of subschemas for which values are generated.
const MAX_PLACES: usize = 20_000;

/// The maximum number of items in the smallest value.
const MAX_ITEMS: u64 = 10_000;

/// From this depth of nested arrays on, an array gets at most one optional item; three at each level would be too many.
const FEW: usize = 6;

/// Returns a strategy for the values of a schema.
///
/// # Errors
/// The place for which no value can be generated, and the reason.
pub(super) fn values(schema: &Value) -> Result<BoxedStrategy<Value>, String> {
    let (at, open) = (String::new(), Vec::new());
    Maker { root: schema, at, depth: 0, arrays: 0, times: 1, places: 0, open, is_endless: false }.of(schema)
}

type Pairs = BTreeMap<String, Value>;

struct Maker<'a> {
    root: &'a Value,
    at: String,
    depth: usize,
    /// The number of arrays around the current place, and the number of times that the smallest value contains it.
    arrays: usize,
    times: u64,
    places: usize,
    /// The references that the current place is within.
    open: Vec<String>,
    /// Whether the last refusal was that of a recursive schema. An absent member or item can end the recursion.
    is_endless: bool,
}

impl Maker<'_> {
    fn refuse<T>(&self, why: &str) -> Result<T, String> {
        Err(format!("{}: {why}", self.at))
    }

    fn inside(&mut self, segment: &str, schema: &Value) -> Result<BoxedStrategy<Value>, String> {
        let before = self.at.len();
        pointer::push(&mut self.at, segment);
        let made = self.of(schema);
        self.at.truncate(before);
        made
    }

    /// Like [`inside`](Self::inside), for a part that each value contains at least `least` times.
    fn within(&mut self, least: u64, segment: &str, schema: &Value) -> Result<BoxedStrategy<Value>, String> {
        let before = self.times;
        self.times = before.saturating_mul(least.max(1));
        self.arrays += 1;
        let made = if self.times > MAX_ITEMS {
            self.refuse("the smallest value is too large to be tried")
        } else {
            self.inside(segment, schema)
        };
        self.arrays -= 1;
        self.times = before;
        made
    }

    /// Refuses a schema that is too deep or recursive. See `is_endless`.
    fn endless<T>(&mut self) -> Result<T, String> {
        self.is_endless = true;
        self.refuse("the schema nests too deep, or comes back to itself")
    }

    /// Returns whether the last refusal was of a recursive schema, and forgets it. The caller leaves out the part.
    fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_endless)
    }

    fn of(&mut self, schema: &Value) -> Result<BoxedStrategy<Value>, String> {
        let (followed, before) = (references(schema), self.open.len());
        let rounds = |reference: &&str| self.open.iter().filter(|open| open == reference).count();
        if followed.iter().any(|reference| rounds(reference) > MAX_ROUNDS) {
            return self.endless();
        }
        self.open.extend(followed.into_iter().map(str::to_owned));
        let made = self.place(schema);
        self.open.truncate(before);
        made
    }

    fn place(&mut self, schema: &Value) -> Result<BoxedStrategy<Value>, String> {
        self.places += 1;
        if self.places > MAX_PLACES {
            return self.refuse("the schema has too many places");
        }
        if self.depth > MAX_DEPTH {
            return self.endless();
        }
        let schema = match merged(self.root, schema) {
            Some(schema) => schema,
            None if *schema == Value::Bool(true) => return Ok(anything()),
            None if *schema == Value::Bool(false) => return self.refuse("the schema allows nothing"),
            None => {
                return self.refuse("a reference is not a JSON Pointer to a schema of this document");
            }
        };
        let schema = &*schema;
        if let Some(constant) = schema.get("const") {
            return Ok(Just(constant.clone()).boxed());
        }
        if let Some(Value::Array(listed)) = schema.get("enum") {
            return if listed.is_empty() { self.refuse("`enum` is empty") } else { Ok(select(listed.clone()).boxed()) };
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                let rest = without(schema, keyword);
                let branches: Vec<_> = if rest.is_empty() {
                    branches.clone()
                } else {
                    branches.iter().map(|branch| json!({ "allOf": [rest, branch] })).collect()
                };
                self.depth += 1;
                let made = self.alternatives(&branches);
                self.depth -= 1;
                return made;
            }
        }
        let types = types(schema);
        if types.is_empty() {
            let is_object = schema.contains_key("properties");
            return if is_object { self.object(schema) } else { Ok(anything()) };
        }
        self.depth += 1;
        let made: Result<Vec<_>, _> = types.iter().map(|name| self.of_type(name, schema)).collect();
        self.depth -= 1;
        Ok(Union::new(made?).boxed())
    }

    /// Leaves out a recursive alternative if another alternative has values.
    fn alternatives(&mut self, branches: &[Value]) -> Result<BoxedStrategy<Value>, String> {
        let (mut made, mut endless) = (Vec::new(), None);
        for branch in branches {
            match self.of(branch) {
                Err(refused) if self.ends() => endless = Some(refused),
                branch => made.push(branch?),
            }
        }
        match endless {
            _ if !made.is_empty() => Ok(Union::new(made).boxed()),
            Some(refused) => {
                self.is_endless = true;
                Err(refused)
            }
            None => self.refuse("there is no alternative"),
        }
    }

    fn of_type(&mut self, name: &str, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        match name {
            "null" => Ok(Just(Value::Null).boxed()),
            "boolean" => Ok(any::<bool>().prop_map(Value::from).boxed()),
            "integer" => scalars::integer(schema).or_else(|why| self.refuse(why)),
            "number" => scalars::number(schema).or_else(|why| self.refuse(why)),
            "string" => scalars::text(schema, self.times).or_else(|why| self.refuse(why)),
            "array" => self.array(schema),
            "object" => self.object(schema),
            _ => self.refuse("the type is unknown"),
        }
    }

    fn array(&mut self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let low = bound("minItems").unwrap_or(0);
        let spread = if self.arrays < FEW { 3 } else { 1 };
        let high = bound("maxItems").unwrap_or(u64::MAX).min(low.saturating_add(spread));
        if low > high {
            return self.refuse("no array has such a length");
        }
        // Before 2020-12, a list in `items` had the meaning of `prefixItems`.
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => (&**first, rest),
            (None, Some(Value::Array(first))) => (&**first, schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let first: Vec<_> = first
            .iter()
            .enumerate()
            .map(|(index, item)| self.inside(&index.to_string(), item))
            .collect::<Result<_, _>>()?;
        let (low, high) = (low.saturating_sub(first.len() as u64), high.saturating_sub(first.len() as u64));
        let items = match rest {
            Some(Value::Bool(false)) if low == 0 => return Ok(first.prop_map(Value::Array).boxed()),
            // An array that may be empty ends the recursion.
            Some(items) => match self.within(low, "0", items) {
                Err(_) if low == 0 && (self.ends() || self.depth >= MAX_DEPTH / 2) => {
                    return Ok(first.prop_map(Value::Array).boxed());
                }
                items => items?,
            },
            None if first.is_empty() || low > 0 => self.within(low, "0", &Value::Bool(true))?,
            None => return Ok(first.prop_map(Value::Array).boxed()),
        };
        let (low, high) = (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0));
        let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let unique = move |mut items: Vec<Value>| {
            let mut seen = BTreeSet::new();
            items.retain(|item| !is_set || seen.insert(item.to_string()));
            Value::Array(items)
        };
        let items = (first, vec(items, low..=high)).prop_map(|(mut first, rest)| {
            first.extend(rest);
            first
        });
        Ok(items.prop_map(unique).boxed())
    }

    fn object(&mut self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let required: Vec<_> = required(schema).collect();
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let mut members = Vec::new();
        for (name, property) in properties {
            let is_required = required.contains(&name.as_str());
            if !is_required && *property == Value::Bool(false) {
                continue;
            }
            let value = match self.inside(name, property) {
                // A member that may be absent ends the recursion.
                Err(_) if !is_required && (self.ends() || self.depth >= MAX_DEPTH / 2) => continue,
                value => value?,
            };
            let name = name.clone();
            let given = value.prop_map(move |value| Some((name.clone(), value)));
            members.push(if is_required {
                given.boxed()
            } else {
                Union::new_weighted(vec![(1, Just(None).boxed()), (3, given.boxed())]).boxed()
            });
        }
        for absent in required.iter().filter(|name| !properties.contains_key(**name)) {
            if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
                return self.refuse(&format!("`{absent}` is required, and the schema does not have it"));
            }
            let name = (*absent).to_owned();
            members.push(anything().prop_map(move |value| Some((name.clone(), value))).boxed());
        }
        let low = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let most = schema.get("maxProperties").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let is_open = properties.is_empty();
        let more = match (schema.get("additionalProperties"), schema.get("patternProperties")) {
            (_, Some(Value::Object(patterns))) if is_open && !patterns.is_empty() => {
                let mut pairs = Vec::new();
                for (pattern, value) in patterns {
                    let Some(name) = of_pattern(pattern, 0, SPREAD) else {
                        return self.refuse("no name can be made for its `patternProperties`");
                    };
                    pairs.push((name, self.within(low, "*", value)?).boxed());
                }
                Some(self.members(Union::new(pairs).boxed(), low, most)?)
            }
            (Some(more @ (Value::Object(_) | Value::Bool(true))), _) if is_open => {
                self.named(schema, more, low, most)?
            }
            (None, _) if is_open && low > required.len() as u64 => self.named(schema, &Value::Bool(true), low, most)?,
            _ => None,
        };
        let members = members
            .prop_map(|members: Vec<Option<(String, Value)>>| members.into_iter().flatten().collect::<Map<_, _>>());
        Ok(match more {
            Some(more) => (members, more)
                .prop_map(|(mut members, more)| {
                    members.extend(more);
                    Value::Object(members)
                })
                .boxed(),
            None => members.prop_map(Value::Object).boxed(),
        })
    }

    /// Returns members whose names are arbitrary, or match `propertyNames`.
    fn named(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        low: u64,
        most: u64,
    ) -> Result<Option<BoxedStrategy<Pairs>>, String> {
        let rules = schema.get("propertyNames").and_then(Value::as_object).filter(|rules| !rules.is_empty());
        let name = match rules {
            Some(rules) => {
                let mut rules = rules.clone();
                rules.entry("type").or_insert_with(|| "string".into());
                self.inside("name", &Value::Object(rules))?
            }
            None => proptest::char::range('a', 'z').prop_map(|letter| Value::from(format!("key_{letter}"))).boxed(),
        };
        let name = name.prop_map(|name| name.as_str().unwrap_or_default().to_owned());
        match self.within(low, "*", value) {
            Err(_) if low == 0 && (self.ends() || self.depth >= MAX_DEPTH / 2) => Ok(None),
            value => self.members((name, value?).boxed(), low, most).map(Some),
        }
    }

    fn members(
        &self,
        pair: BoxedStrategy<(String, Value)>,
        low: u64,
        most: u64,
    ) -> Result<BoxedStrategy<Pairs>, String> {
        let high = low.saturating_add(2).min(most);
        if low > high {
            return self.refuse("no object has so many members");
        }
        let (low, high) = (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0));
        // Up to two pairs more than `low`, because equal names are merged. A value with too few members is rejected.
        Ok(vec(pair, low..=high).prop_map(|pairs| pairs.into_iter().collect()).boxed())
    }
}

fn anything() -> BoxedStrategy<Value> {
    select(vec![
        Value::Null,
        Value::Bool(true),
        Value::from(7),
        Value::from("text"),
        Value::Array(Vec::new()),
        Value::Object(Map::new()),
    ])
    .boxed()
}
