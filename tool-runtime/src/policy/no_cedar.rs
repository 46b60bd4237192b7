//! Replaces `policy::cedar` in a build without the feature `cedar`: reading a policy with a table `cedar` fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Problem;
use crate::json::Tree;
use crate::policy::label::LabelRule;
use crate::policy::resource::{PolicyContext, PolicyResource};
use crate::policy::rule_verdict::RuleVerdict;
use crate::tool::{ToolEffect, ToolSpec};

/// An empty type, because this build cannot evaluate Cedar policies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum CedarRules {}

impl<'de> Deserialize<'de> for CedarRules {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        let message = "this build has no Cedar engine; enable the feature `cedar` of `tool-runtime`";
        Err(serde::de::Error::custom(message))
    }
}

impl CedarRules {
    pub(super) fn reads_arguments(&self) -> bool {
        match *self {}
    }

    pub(super) fn reads(&self, _: &str) -> bool {
        match *self {}
    }

    pub(crate) fn asks(&self) -> std::iter::Empty<String> {
        match *self {}
    }

    pub(super) fn can_ask(&self, _: &str, _: &str, _: ToolEffect) -> bool {
        match *self {}
    }

    pub(super) fn roles(&self) -> &BTreeSet<String> {
        match *self {}
    }

    pub(super) fn attributes(&self) -> &BTreeSet<String> {
        match *self {}
    }

    pub(super) fn labels(&self) -> &BTreeSet<String> {
        match *self {}
    }

    pub(crate) fn check(
        &self,
        _: &BTreeMap<String, LabelRule>,
        _: &HashMap<&str, (&ToolSpec, ToolEffect)>,
    ) -> Vec<Problem> {
        match *self {}
    }

    pub(crate) fn say(
        &self,
        _: &PolicyContext<'_>,
        _: &PolicyResource<'_>,
        _: ToolEffect,
        _: Option<&Tree<'_>>,
    ) -> Option<(RuleVerdict, Vec<String>)> {
        match *self {}
    }
}
