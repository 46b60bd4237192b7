//! The two parts of a sealed record: the members that an erasure keeps, and all others.
//!
//! An erasure keeps the ids of the run and the call, the tool, its caller, the outcome, the verdict with a rule that
//! names no caller, the tenant, the times, and other members without values, such as whether the tool ran. All members
//! that can contain information about a person are erased.

use std::borrow::Cow;

use serde_json::Value;

use crate::call::{Decision, JsonText, RecordSeal, RecordedArguments, ToolInvocationRecord};
use crate::json::{self, canonical};
use crate::media::LeftOut;
use crate::store::{AuditRecord, DecisionRecord, DecisionRefusal};
use crate::tool::Hash;

/// Returns the record of a call without its values. It is not sealed.
pub(super) fn call(record: &ToolInvocationRecord) -> ToolInvocationRecord {
    ToolInvocationRecord {
        // A tool name that is not in the catalog is the model's text, so it is erased.
        name: if record.definition_hash.is_some() { record.name.clone() } else { "".into() },
        arguments: nothing(),
        changes: Vec::new(),
        result: None,
        left_out: LeftOut::default(),
        media: Vec::new(),
        // The tool's author can put a value into this text.
        tool_code: None,
        safe_message: None,
        violations: Vec::new(),
        decision: record.decision.as_ref().map(rule_without_caller),
        session_id: None,
        conversation_id: None,
        principal: None,
        roles: Vec::new(),
        attributes: Vec::new(),
        effect_key: None,
        repair: None,
        intervention: None,
        seal: None,
        ..record.clone()
    }
}

/// The tables of a policy that are about callers. A rule in one of them names the principal, the role, the attribute or
/// the tenant.
const OF_CALLERS: [&str; 4] = ["attributes", "principals", "roles", "tenants"];

/// Returns the verdict with its rule. A rule in a table about callers is replaced by the name of the table.
fn rule_without_caller(decision: &Decision) -> Decision {
    let table = OF_CALLERS.into_iter().find(|table| decision.rule.split('.').next() == Some(table));
    Decision { rule: table.map_or_else(|| decision.rule.clone(), Cow::Borrowed), verdict: decision.verdict }
}

/// Returns a decision without its values and its deciders. It is not sealed.
pub(super) fn decision(record: &DecisionRecord) -> DecisionRecord {
    DecisionRecord {
        principal: None,
        decider: None,
        refused: record.refused.as_ref().map(|refused| DecisionRefusal { violations: Vec::new(), ..refused.clone() }),
        // The digest of the question covers the principal and the shown arguments.
        question: None,
        argument_digest: None,
        edited_digest: None,
        changes: Vec::new(),
        earlier: Vec::new(),
        result: None,
        world: None,
        unknown: record.unknown.clone().map(|mut unknown| {
            unknown.effect_key = None;
            unknown
        }),
        arguments: nothing(),
        seal: None,
        ..record.clone()
    }
}

/// Adds a random salt to a record, if the record has values, so that it is sealed in two parts. A record that already
/// has a salt keeps it, so that a chain can be copied to another store.
pub(super) fn salted(mut record: AuditRecord) -> AuditRecord {
    if let Some(seal) = seal_mut(&mut record)
        && !matches!(seal.as_deref(), Some(RecordSeal::Salt(_)))
    {
        *seal = Some(Box::new(RecordSeal::random()));
    }
    record
}

fn seal_mut(record: &mut AuditRecord) -> Option<&mut Option<Box<RecordSeal>>> {
    match record {
        AuditRecord::Call(record) => Some(&mut record.seal),
        AuditRecord::Decision(record) => Some(&mut record.seal),
        AuditRecord::Retention(_) | AuditRecord::Erased(_) => None,
    }
}

/// Returns the digest of the whole record, and the part that an erasure keeps. `None` for a record that is sealed in
/// one part.
pub(super) fn parts(record: &AuditRecord) -> Result<Option<(Hash, AuditRecord)>, serde_json::Error> {
    if let AuditRecord::Erased(inner) = record {
        // An erased record has only the kept members. Values added to it would change the hash.
        let mut rest = (**inner).clone();
        let seal = seal_mut(&mut rest).and_then(Option::take);
        return Ok(match seal.as_deref() {
            Some(RecordSeal::Erased(digest)) => Some((*digest, rest)),
            Some(RecordSeal::Salt(_)) | None => None,
        });
    }
    let (seal, rest) = match record {
        AuditRecord::Call(record) => (&record.seal, AuditRecord::Call(Box::new(call(record)))),
        AuditRecord::Decision(record) => (&record.seal, AuditRecord::Decision(Box::new(decision(record)))),
        AuditRecord::Retention(_) | AuditRecord::Erased(_) => return Ok(None),
    };
    let Some(seal) = seal else { return Ok(None) };
    Ok(seal.digest(&canonical_text(record)?).map(|digest| (digest, rest)))
}

/// The result of an erasure of one record.
pub(super) enum Erasure {
    /// The record has these contents.
    To(AuditRecord),
    /// The record is sealed in one part, so its values cannot be erased.
    Impossible,
    /// The record has nothing to erase.
    Nothing,
}

/// Returns the contents of a record after an erasure.
pub(super) fn erased(record: &AuditRecord) -> Result<Erasure, serde_json::Error> {
    if matches!(record, AuditRecord::Retention(_) | AuditRecord::Erased(_)) {
        return Ok(Erasure::Nothing);
    }
    let Some((digest, mut rest)) = parts(record)? else { return Ok(Erasure::Impossible) };
    if let Some(seal) = seal_mut(&mut rest) {
        *seal = Some(Box::new(RecordSeal::Erased(digest)));
    }
    Ok(Erasure::To(AuditRecord::Erased(Box::new(rest))))
}

/// Returns the canonical JSON of a record. Parsing into a borrowed tree needs a tenth of the allocations of a
/// [`Value`].
pub(super) fn canonical_text(record: &AuditRecord) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(record)?;
    match json::parse_record(&text) {
        Ok(tree) => Ok(canonical::to_text(&tree)),
        // Stored output of a tool can contain a member twice; the last one is used.
        Err(_) => Ok(canonical::to_text(&serde_json::from_str::<Value>(&text)?)),
    }
}

pub(super) fn nothing() -> RecordedArguments {
    RecordedArguments::Masked(JsonText::null())
}
