//! [`Rights`]: a party as a server compares it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::policy::RunTools;
use crate::tool::Hash;

/// A principal with its properties and tools. Lists are sets: rules see neither an order nor a repetition.
#[derive(PartialEq, Eq, Serialize)]
pub(crate) struct Rights<'a> {
    pub(in crate::runner) party: Party<'a>,
    pub(in crate::runner) tools: Option<&'a RunTools>,
}

/// A tenant, a principal, its roles and its attributes.
type Party<'a> =
    (&'a Option<Arc<str>>, &'a Option<Arc<str>>, BTreeSet<&'a Arc<str>>, BTreeSet<&'a (Arc<str>, Arc<str>)>);

impl Rights<'_> {
    /// Returns a digest by which another process compares the rights.
    pub(crate) fn digest(&self) -> Hash {
        // Writing texts does not fail.
        Hash::sha256(serde_json::to_vec(self).unwrap_or_default())
    }
}
