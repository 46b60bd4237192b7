//! [`OfferedTools`]: the tools of requests as text, written once for all requests that offer the same.
//!
//! Closing schemas and writing them through trees costs tens of microseconds a tool, and most requests offer the same
//! tools. Only the parts that a request may change are left to it: choice, answer and marks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::wire::encode::tools::{Checks, Extras, check, extras, narrows};
use crate::wire::encode::{AnswerMode, Dialect, EncodeError, EncodeOptions, Loss, SentSchema, ToolChoice, WireTool};

/// The tools of requests, written for one format.
pub(crate) struct OfferedTools {
    checks: Checks,
    names: Arc<BTreeSet<String>>,
    /// The tools that the format cannot carry.
    left_out: Vec<String>,
    /// The text before and after the list.
    around: (String, String),
    /// The tools, with a comma between each two.
    list: String,
    /// Where the last one begins in the list.
    last: usize,
    /// The last one with the mark of the provider's cache; `None` if the format has no marks.
    marked: Option<String>,
    size: usize,
}

impl OfferedTools {
    /// Writes the tools. Only the options for closing schemas and for unsupported tools count, unless the choice
    /// [narrows](Self::narrows) the tools.
    pub(crate) fn new<'a, T: Into<WireTool<'a>>>(
        dialect: &dyn Dialect,
        tools: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Self, EncodeError> {
        let (mut list, mut last, mut newest) = (String::new(), 0, None);
        let mut given = Vec::new();
        let tools = tools.into_iter().map(Into::into).inspect(|tool: &WireTool<'a>| given.push(tool.name));
        let checks = check(dialect, tools, options, |tool| {
            if !list.is_empty() {
                list.push(',');
            }
            last = list.len();
            list.push_str(&tool.to_string());
            newest = Some(tool);
        })?;
        let choice = options.settings.tool_choice.as_ref().filter(|choice| narrows(dialect.carries(), Some(choice)));
        let is_left_out =
            |name: &&str| !checks.tools.contains_key(*name) && choice.is_none_or(|choice| choice.allows(name));
        let left_out = given.into_iter().filter(is_left_out).map(str::to_owned).collect();
        // The empty list marks the place of the tools.
        let around = dialect.tools(Vec::new()).to_string();
        let (open, close) = around.split_at(around.find("[]").map_or(around.len(), |list| list + 1));
        let names = checks.tools.keys().map(|name| 2 * name.len() + 128).sum::<usize>();
        let losses = checks.losses.iter().map(|loss| loss.path.len() + loss.what.len() + 128).sum::<usize>();
        Ok(Self {
            size: list.len() + names + losses,
            names: Arc::new(checks.tools.keys().cloned().collect()),
            left_out,
            around: (open.to_owned(), close.to_owned()),
            list,
            last,
            marked: newest.and_then(|newest| marked(dialect, newest)),
            checks,
        })
    }

    /// Whether a choice decides which tools are offered: the format cannot name several in one.
    pub(crate) fn narrows(dialect: &dyn Dialect, choice: Option<&ToolChoice>) -> bool {
        narrows(dialect.carries(), choice)
    }

    /// Which schema of a tool is sent; `None` for one that is not offered.
    pub(crate) fn sent(&self, name: &str) -> Option<SentSchema> {
        self.checks.tools.get(name).copied()
    }

    /// The tools that the format cannot carry.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(String::as_str)
    }

    /// The parts of the tools that the format cannot carry.
    pub(crate) fn losses(&self) -> &[Loss] {
        &self.checks.losses
    }

    /// The bytes of memory that it takes, about.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The parts of a request about these tools, without their list.
    pub(super) fn extras(
        &self,
        dialect: &dyn Dialect,
        options: &EncodeOptions,
        answer: Option<(WireTool<'_>, AnswerMode)>,
    ) -> Result<Extras, EncodeError> {
        extras(dialect, &self.checks, options, answer)
    }

    /// The names that a request offers, the answer's tool included.
    pub(super) fn names(&self, answer: Option<&str>) -> Arc<BTreeSet<String>> {
        let mut names = Arc::clone(&self.names);
        if let Some(answer) = answer {
            Arc::make_mut(&mut names).insert(answer.to_owned());
        }
        names
    }

    /// The value of the field, in pieces; empty if there is no tool. With marks, the last tool has one.
    pub(super) fn pieces(&self, dialect: &dyn Dialect, answer: Option<Value>, marks: bool) -> Vec<Cow<'_, str>> {
        let (open, close) = (self.around.0.as_str(), self.around.1.as_str());
        let Some(answer) = answer else {
            let Some(marked) = self.marked.as_deref().filter(|_| marks) else {
                let list = [open, &self.list, close].map(Cow::Borrowed);
                return if self.list.is_empty() { Vec::new() } else { list.into() };
            };
            let before = self.list.get(..self.last).unwrap_or_default();
            return [open, before, marked, close].map(Cow::Borrowed).into();
        };
        let plain = answer.to_string();
        let answer = Some(answer).filter(|_| marks).and_then(|answer| marked(dialect, answer)).unwrap_or(plain);
        let comma = if self.list.is_empty() { "" } else { "," };
        vec![open.into(), self.list.as_str().into(), comma.into(), answer.into(), close.into()]
    }
}

/// The tool with the mark up to which the provider keeps the request in its cache.
fn marked(dialect: &dyn Dialect, mut tool: Value) -> Option<String> {
    let (key, mark) = dialect.tool_mark()?;
    tool.as_object_mut()?.insert(key.to_owned(), mark);
    Some(tool.to_string())
}
