//! Values of a schema, as a strategy of proptest.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{BoxedStrategy, Just, Strategy as _, any};
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::string::string_regex;
use serde_json::{Map, Value};

use crate::testing::agreement::mutants::{required, resolved, types};
use crate::testing::agreement::texts::{ascii, examples, formatted};
use crate::text::pointer;

/// How deep a schema may nest.
const MAX_DEPTH: usize = 24;

/// How often a reference may lead back into itself on one path. A tree with two children doubles with each level.
const MAX_ROUNDS: usize = 2;

/// The maximum number of places of a schema for which values are made.
const MAX_PLACES: usize = 20_000;

/// How many items or characters are made beyond the least number.
const SPREAD: u64 = 6;

/// Returns the values of a schema.
///
/// # Errors
/// The place for which none can be made, and why.
pub(super) fn values(schema: &Value) -> Result<BoxedStrategy<Value>, String> {
    Maker { root: schema, at: String::new(), depth: 0, places: 0, open: Vec::new(), is_endless: false }.of(schema)
}

struct Maker<'a> {
    root: &'a Value,
    at: String,
    depth: usize,
    places: usize,
    /// The references that the current place is within.
    open: Vec<String>,
    /// Whether the last refusal was that of a schema without an end: what may be absent ends it.
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

    /// A refusal that whatever may be absent ends.
    fn endless<T>(&mut self) -> Result<T, String> {
        self.is_endless = true;
        self.refuse("the schema nests too deep, or comes back to itself")
    }

    /// Returns whether a refusal inside of what may be absent is ended by its absence.
    fn ends(&mut self) -> bool {
        std::mem::take(&mut self.is_endless)
    }

    fn of(&mut self, schema: &Value) -> Result<BoxedStrategy<Value>, String> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return self.place(schema) };
        if self.open.iter().filter(|open| *open == reference).count() > MAX_ROUNDS {
            return self.endless();
        }
        self.open.push(reference.to_owned());
        let made = self.place(schema);
        self.open.pop();
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
        let Some(schema) = resolved(self.root, schema) else {
            return match schema {
                Value::Bool(false) => self.refuse("the schema allows nothing"),
                Value::Bool(true) => Ok(anything()),
                _ => self.refuse("the reference leads nowhere"),
            };
        };
        if let Some(constant) = schema.get("const") {
            return Ok(Just(constant.clone()).boxed());
        }
        if let Some(Value::Array(listed)) = schema.get("enum") {
            return if listed.is_empty() { self.refuse("`enum` is empty") } else { Ok(select(listed.clone()).boxed()) };
        }
        for alternatives in ["oneOf", "anyOf"] {
            if let Some(Value::Array(branches)) = schema.get(alternatives) {
                self.depth += 1;
                let made = self.alternatives(branches);
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

    /// An alternative without an end is left out if another one has values.
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
            "integer" => self.integer(schema),
            "number" => self.number(schema),
            "string" => self.text(schema),
            "array" => self.array(schema),
            "object" => self.object(schema),
            _ => self.refuse("the type is unknown"),
        }
    }

    fn integer(&self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let bound = |name: &str| schema.get(name).and_then(whole);
        let low = bound("minimum").max(bound("exclusiveMinimum").map(|bound| bound + 1));
        let high = least(bound("maximum"), bound("exclusiveMaximum").map(|bound| bound - 1));
        let (low, high) = (low.unwrap_or(i64::MIN.into()), high.unwrap_or(i64::MAX.into()));
        // What JSON numbers hold here: 64 bits, with or without a sign.
        let (low, high) = (low.max(i64::MIN.into()), high.min(u64::MAX.into()));
        let step = schema.get("multipleOf").and_then(whole).unwrap_or(1).max(1);
        let (first, last) = (low.div_euclid(step) + i128::from(low.rem_euclid(step) != 0), high.div_euclid(step));
        if first > last {
            return self.refuse("no integer is within the bounds");
        }
        Ok((first..=last).prop_map(move |times| integer(times * step)).boxed())
    }

    fn number(&self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        if schema.get("multipleOf").and_then(whole).is_some() {
            return self.integer(schema);
        }
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let low = bound("minimum").or(bound("exclusiveMinimum"));
        let high = bound("maximum").or(bound("exclusiveMaximum"));
        let (low, high) = match (low, high) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, low.abs().mul_add(2.0, low + 1_000.0)),
            (None, Some(high)) => (high.abs().mul_add(-2.0, high - 1_000.0), high),
            (None, None) => (-1_000.0, 1_000.0),
        };
        if low > high {
            return self.refuse("no number is within the bounds");
        }
        match schema.get("multipleOf").and_then(Value::as_f64) {
            Some(step) if step > 0.0 => {
                #[allow(clippy::cast_possible_truncation, reason = "it saturates, and the validator judges the value")]
                let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
                #[allow(clippy::cast_precision_loss, reason = "the validator judges the value")]
                Ok((first..=last.max(first)).prop_map(move |times| Value::from(times as f64 * step)).boxed())
            }
            _ => Ok((low..=high).prop_map(Value::from).boxed()),
        }
    }

    fn text(&self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let low = bound("minLength").unwrap_or(0);
        let longest = bound("maxLength").unwrap_or(u64::MAX);
        let high = longest.min(low.saturating_add(SPREAD));
        if low > 100_000 || low > high {
            return self.refuse("no text has such a length");
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            let inner = pattern.strip_prefix('^').unwrap_or(pattern);
            let inner = if inner.ends_with("\\$") { inner } else { inner.strip_suffix('$').unwrap_or(inner) };
            // Of the digits of an integer of 128 bits, the last one may be too much.
            let inner = inner.strip_suffix("{1,39}").map_or_else(|| ascii(inner), |digits| format!("{digits}{{1,38}}"));
            let fits = move |text: &String| {
                let length = text.chars().count() as u64;
                low <= length && length <= longest
            };
            return match string_regex(&inner) {
                Ok(texts) => Ok(texts.prop_filter("a text of its length", fits).prop_map(Value::from).boxed()),
                Err(_) => self.refuse("no text can be made for its `pattern`"),
            };
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            return match examples(format) {
                Some(examples) => {
                    Ok(formatted(format).unwrap_or_else(|| select(examples).prop_map(Value::from).boxed()))
                }
                None => self.refuse("no text can be made for its `format`"),
            };
        }
        let (low, high) = (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0));
        let letters = Union::new_weighted(vec![
            (12, proptest::char::range('a', 'z').boxed()),
            (2, select(vec!['A', '7', ' ', '-', '"', '\\', '/', '~', '\n', 'é', '漢', '🦀']).boxed()),
        ]);
        Ok(vec(letters, low..=high).prop_map(|letters| letters.into_iter().collect::<String>().into()).boxed())
    }

    fn array(&mut self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let low = bound("minItems").unwrap_or(0);
        let high = bound("maxItems").unwrap_or(u64::MAX).min(low.saturating_add(3));
        if low > 1_000 || low > high {
            return self.refuse("no array has such a length");
        }
        if let Some(Value::Array(first)) = schema.get("prefixItems") {
            let made: Result<Vec<_>, _> =
                first.iter().enumerate().map(|(index, item)| self.inside(&index.to_string(), item)).collect();
            return Ok(made?.prop_map(Value::Array).boxed());
        }
        let items = match schema.get("items") {
            // An array that may be empty ends a schema that comes back to itself.
            Some(items) => match self.inside("0", items) {
                Err(_) if low == 0 && (self.ends() || self.depth >= MAX_DEPTH / 2) => {
                    return Ok(Just(Value::Array(Vec::new())).boxed());
                }
                items => items?,
            },
            None => anything(),
        };
        let (low, high) = (usize::try_from(low).unwrap_or(0), usize::try_from(high).unwrap_or(0));
        let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let unique = move |mut items: Vec<Value>| {
            let mut seen = BTreeSet::new();
            items.retain(|item| !is_set || seen.insert(item.to_string()));
            Value::Array(items)
        };
        Ok(vec(items, low..=high).prop_map(unique).boxed())
    }

    fn object(&mut self, schema: &Map<String, Value>) -> Result<BoxedStrategy<Value>, String> {
        let required: Vec<_> = required(schema).collect();
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let mut members = Vec::new();
        for (name, property) in properties {
            let is_required = required.contains(&name.as_str());
            let value = match self.inside(name, property) {
                // A member that may be absent ends a schema that comes back to itself.
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
        let more = match schema.get("additionalProperties") {
            Some(more @ Value::Object(_)) if properties.is_empty() => {
                let low = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
                let low = usize::try_from(low).unwrap_or(usize::MAX);
                if low > 1_000 {
                    return self.refuse("no object has so many members");
                }
                let key = match schema
                    .get("propertyNames")
                    .filter(|names| names.as_object().is_some_and(|names| !names.is_empty()))
                {
                    Some(names) => {
                        let mut names = names.clone();
                        if let Some(names) = names.as_object_mut() {
                            names.entry("type").or_insert_with(|| "string".into());
                        }
                        self.inside("name", &names)?
                    }
                    None => {
                        proptest::char::range('a', 'z').prop_map(|letter| Value::from(format!("key_{letter}"))).boxed()
                    }
                };
                let key = key.prop_map(|key| key.as_str().unwrap_or_default().to_owned());
                match self.inside("*", more) {
                    Err(_) if low == 0 && (self.ends() || self.depth >= MAX_DEPTH / 2) => None,
                    value => Some(btree_map(key, value?, low..=low + 2).boxed()),
                }
            }
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

fn least(one: Option<i128>, other: Option<i128>) -> Option<i128> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn whole(value: &Value) -> Option<i128> {
    let number = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    #[allow(clippy::cast_possible_truncation, reason = "a bound beyond 128 bits saturates")]
    number.or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128))
}

fn integer(value: i128) -> Value {
    i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).unwrap_or_default()
}
