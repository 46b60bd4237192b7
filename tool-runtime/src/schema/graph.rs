//! Resolves the references of a document, and counts the schemas that it expands to. The count uses memoisation and
//! never expands, because a document of two kilobytes can expand to so many schemas that visiting them would take
//! years.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::{Problem, SchemaProblemKind};
use crate::schema::positions::{MAX_DEPTH, Position, subschemas};
use crate::schema::problem::Pointer;
use crate::text::pointer;

/// The maximum number of schemas of an expanded document; a reference back to a schema that contains it adds nothing.
const MAX_EXPANDED: u64 = 10_000;

/// The longest chain of references and schemas, so that walking it stays within a thread's stack.
pub(super) const MAX_CHAIN: usize = 128;

/// The meta-schemas that validators contain, so that a reference to one fetches nothing.
const BUILT_IN: [&str; 2] = ["http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema"];

/// A document whose references are known to stay inside it.
pub(crate) struct Document<'a> {
    /// Absolute identifiers, and the schema each one names.
    resources: Vec<(String, &'a Value)>,
    /// The resource that a schema belongs to, by the schema's address.
    owners: HashMap<usize, usize>,
    anchors: HashMap<(usize, &'a str), &'a Value>,
    dynamic: HashMap<&'a str, Vec<&'a Value>>,
    problems: Vec<Problem>,
}

/// A place that a reference leads to.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Schema(&'a Value),
    BuiltIn,
}

impl<'a> Document<'a> {
    /// Indexes a document and resolves every reference in it.
    pub(crate) fn read(root: &'a Value) -> Result<Self, Vec<Problem>> {
        let mut document = Self {
            resources: vec![(String::new(), root)],
            owners: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            problems: Vec::new(),
        };
        let mut references = Vec::new();
        document.index(root, 0, 0, &mut Pointer::default(), &mut references);
        for (pointer, schema) in references {
            if document.targets(schema).is_none() {
                document.problems.push(
                    Problem::schema(
                        pointer,
                        "the reference leads out of the schema or has no target",
                        "refer to `#/$defs/NAME`; nothing is ever fetched",
                    )
                    .of_kind(SchemaProblemKind::Reference),
                );
            }
        }
        let problems = std::mem::take(&mut document.problems);
        if problems.is_empty() { Ok(document) } else { Err(problems) }
    }

    fn index(
        &mut self,
        schema: &'a Value,
        owner: usize,
        depth: usize,
        pointer: &mut Pointer,
        references: &mut Vec<(String, &'a Map<String, Value>)>,
    ) {
        let Value::Object(members) = schema else { return };
        if depth > MAX_DEPTH {
            let message = format!("schemas nest over {MAX_DEPTH} levels deep");
            let problem = pointer.problem(message, "nest less, or name the inner schemas in `$defs`");
            return self.problems.push(problem.of_kind(SchemaProblemKind::Depth));
        }
        let mut owner = owner;
        if let Some(Value::String(id)) = members.get("$id") {
            // Draft-07 writes an anchor as `"$id": "#name"`.
            if let Some(anchor) = id.strip_prefix('#') {
                self.anchors.insert((owner, anchor), schema);
            } else {
                let uri = join(&self.resources[owner].0, id.trim_end_matches('#'));
                if depth == 0 {
                    self.resources[0].0 = uri;
                } else if self.resources.iter().any(|(known, _)| *known == uri) {
                    self.problems.push(pointer.problem("the `$id` is used twice", "give each schema its own"));
                } else {
                    owner = self.resources.len();
                    self.resources.push((uri, schema));
                }
            }
        }
        self.owners.insert(address(schema), owner);
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(name)) = members.get(key) {
                self.anchors.insert((owner, name), schema);
                if key == "$dynamicAnchor" {
                    self.dynamic.entry(name).or_default().push(schema);
                }
            }
        }
        if ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| members.contains_key(*key)) {
            references.push((pointer.as_str().to_owned(), members));
        }
        for position in subschemas(members) {
            let mark = position.enter(pointer);
            self.index(position.schema, owner, depth + 1, pointer, references);
            pointer.leave(mark);
        }
    }

    /// Returns the targets of the references of a schema; `None` if one of them does not resolve.
    fn targets(&self, schema: &'a Map<String, Value>) -> Option<Vec<Target<'a>>> {
        let owner = self.owners.get(&(std::ptr::from_ref(schema) as usize)).copied().unwrap_or(0);
        let mut targets = Vec::new();
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = schema.get(key) else { continue };
            let reference = reference.as_str()?;
            targets.push(self.resolve(owner, reference)?);
            // A dynamic reference may lead to any anchor of its name, depending on the path to the reference.
            if let (true, Some(name)) = (key == "$dynamicRef", reference.rsplit('#').next()) {
                targets.extend(self.dynamic.get(name).into_iter().flatten().map(|schema| Target::Schema(schema)));
            }
        }
        Some(targets)
    }

    fn resolve(&self, owner: usize, reference: &str) -> Option<Target<'a>> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (owner, root) = if uri.is_empty() {
            (owner, self.resources[owner].1)
        } else {
            let uri = join(&self.resources[owner].0, uri);
            match self.resources.iter().position(|(known, _)| *known == uri) {
                Some(at) => (at, self.resources[at].1),
                None => return (fragment.is_empty() && BUILT_IN.contains(&&*uri)).then_some(Target::BuiltIn),
            }
        };
        if fragment.is_empty() {
            return Some(Target::Schema(root));
        }
        if !fragment.starts_with('/') {
            return self.anchors.get(&(owner, fragment)).map(|schema| Target::Schema(schema));
        }
        let found = root.pointer(&pointer::percent_decode(fragment)?)?;
        (found.is_object() || found.is_boolean()).then_some(Target::Schema(found))
    }

    /// Returns the schemas that a schema refers to, which apply to the same values.
    pub(crate) fn referred(&self, schema: &'a Map<String, Value>) -> Vec<Target<'a>> {
        self.targets(schema).unwrap_or_default()
    }
}

/// Counts the schemas of an expanded document.
pub(crate) struct Expansion<'a, 'd> {
    document: &'d Document<'a>,
    known: HashMap<usize, Option<u64>>,
    too_deep: bool,
}

impl<'a, 'd> Expansion<'a, 'd> {
    /// Returns an error if a document expands past the limits.
    pub(crate) fn check(document: &'d Document<'a>, root: &'a Value) -> Result<(), Problem> {
        let mut expansion = Self { document, known: HashMap::new(), too_deep: false };
        let schemas = expansion.count(root, 0);
        if expansion.too_deep {
            let message = format!("a chain of references has over {MAX_CHAIN} links");
            return Err(Problem::schema("", message, "refer to schemas directly").of_kind(SchemaProblemKind::Depth));
        }
        if schemas > MAX_EXPANDED {
            let message = format!("references expand to {schemas} schemas, over the limit of {MAX_EXPANDED}");
            let problem = Problem::schema("", message, "refer to shared schemas less often");
            return Err(problem.of_kind(SchemaProblemKind::Depth));
        }
        Ok(())
    }

    fn count(&mut self, schema: &'a Value, depth: usize) -> u64 {
        let Value::Object(members) = schema else { return 1 };
        match self.known.get(&address(schema)) {
            Some(Some(known)) => return *known,
            // The schema is being counted, so a reference back to it adds nothing.
            Some(None) => return 0,
            None => {}
        }
        if depth > MAX_CHAIN {
            self.too_deep = true;
            return 1;
        }
        self.known.insert(address(schema), None);
        let mut schemas = 1_u64;
        for target in self.document.referred(members) {
            schemas = schemas.saturating_add(match target {
                Target::Schema(target) => self.count(target, depth + 1),
                // The approximate number of schemas of a meta-schema.
                Target::BuiltIn => 100,
            });
        }
        for Position { keyword, schema, .. } in subschemas(members) {
            if !matches!(keyword, "$defs" | "definitions") {
                schemas = schemas.saturating_add(self.count(schema, depth + 1));
            }
        }
        self.known.insert(address(schema), Some(schemas));
        schemas
    }
}

/// Returns the address of a schema, which identifies it because the document does not move.
pub(crate) fn address(schema: &Value) -> usize {
    match schema {
        // The map rather than the value around it, so that both kinds of borrow find the same entry.
        Value::Object(members) => std::ptr::from_ref(members) as usize,
        other => std::ptr::from_ref(other) as usize,
    }
}

/// Resolves a reference against its base by the rules of RFC 3986 for plain cases. In other cases, the result can be
/// wrong; it then names no known resource, and the reference is refused.
fn join(base: &str, reference: &str) -> String {
    let scheme = |text: &str| text.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
    if base.is_empty() || scheme(reference) {
        return reference.to_owned();
    }
    if reference.starts_with('/') {
        let host = base.find("://").map_or(0, |at| at + 3);
        let end = base[host..].find('/').map_or(base.len(), |at| host + at);
        return format!("{}{reference}", &base[..end]);
    }
    match base.rfind('/') {
        Some(at) => format!("{}{reference}", &base[..=at]),
        None => reference.to_owned(),
    }
}
