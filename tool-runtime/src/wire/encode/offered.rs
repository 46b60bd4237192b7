//! [`OfferedTools`]: the JSON text of a set of tools, encoded once and shared by all requests that offer this set. A
//! request adds its tool choice, its limit to one call, the tool that takes its answer, and its cache mark.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::wire::encode::tools::{CheckedTools, check};
use crate::wire::encode::{Dialect, EncodeError, EncodeOptions, Loss, SentSchema, WireTool};

/// Encoded tools of one format.
pub(crate) struct OfferedTools {
    pub(super) checked: CheckedTools,
    names: Arc<BTreeSet<String>>,
    /// The tools that the format cannot carry.
    left_out: Vec<String>,
    /// The text before the list.
    prefix: String,
    /// The text after the list.
    suffix: String,
    /// The JSON of the tools, separated by commas.
    list: String,
    /// The offset in `list` at which the last tool begins.
    last: usize,
    /// The last tool with the mark for the provider's cache; `None` if the format has no marks.
    marked: Option<String>,
    size: usize,
}

impl OfferedTools {
    /// Encodes the tools. It reads `strict`, `leave_out_unsupported` and `provider_limits` of the options. It reads the
    /// tool choice only if the choice [narrows](crate::wire::encode::FormatFeatures::narrows) the tools.
    pub(crate) fn new<'a, T: Into<WireTool<'a>>>(
        dialect: &dyn Dialect,
        tools: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Self, EncodeError> {
        let (mut list, mut last, mut newest) = (String::new(), 0, None);
        let mut given = Vec::new();
        let tools = tools.into_iter().map(Into::into).inspect(|tool: &WireTool<'a>| given.push(tool.name));
        let checked = check(dialect, tools, options, |tool| {
            if !list.is_empty() {
                list.push(',');
            }
            last = list.len();
            list.push_str(&tool.to_string());
            newest = Some(tool);
        })?;
        let choice = options.settings.tool_choice.as_ref().filter(|choice| dialect.features().narrows(Some(choice)));
        let is_left_out =
            |name: &&str| !checked.tools.contains_key(*name) && choice.is_none_or(|choice| choice.allows(name));
        let left_out = given.into_iter().filter(is_left_out).map(str::to_owned).collect();
        // The position of the empty list is that of the tools.
        let empty = dialect.tools(Vec::new()).to_string();
        let (prefix, suffix) = empty.split_at(empty.find("[]").map_or(empty.len(), |list| list + 1));
        let name_bytes = checked.tools.keys().map(|name| 2 * name.len() + 128).sum::<usize>();
        let loss_bytes = checked.losses.iter().map(|loss| loss.path.len() + loss.what.len() + 128).sum::<usize>();
        Ok(Self {
            size: list.len() + name_bytes + loss_bytes,
            names: Arc::new(checked.tools.keys().cloned().collect()),
            left_out,
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            list,
            last,
            marked: newest.and_then(|newest| marked(dialect, newest)),
            checked,
        })
    }

    /// Which schema of a tool is sent; `None` if the tool is not offered.
    pub(crate) fn sent(&self, name: &str) -> Option<SentSchema> {
        self.checked.tools.get(name).copied()
    }

    /// The tools that the format cannot carry.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(String::as_str)
    }

    /// The parts of the tools that the format cannot carry.
    pub(crate) fn losses(&self) -> &[Loss] {
        &self.checked.losses
    }

    /// The approximate memory that this value takes, in bytes.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The names that a request offers, including the tool that takes the answer.
    pub(super) fn names(&self, answer: Option<&str>) -> Arc<BTreeSet<String>> {
        let mut names = Arc::clone(&self.names);
        if let Some(answer) = answer {
            Arc::make_mut(&mut names).insert(answer.to_owned());
        }
        names
    }

    /// The value of the `tools` field, in pieces; empty if there is no tool. If `marks` is `true`, the last tool is
    /// marked.
    pub(super) fn pieces(&self, dialect: &dyn Dialect, answer: Option<Value>, marks: bool) -> Vec<Cow<'_, str>> {
        let (prefix, suffix) = (self.prefix.as_str(), self.suffix.as_str());
        let Some(answer) = answer else {
            let Some(marked) = self.marked.as_deref().filter(|_| marks) else {
                let list = [prefix, &self.list, suffix].map(Cow::Borrowed);
                return if self.list.is_empty() { Vec::new() } else { list.into() };
            };
            let before = self.list.get(..self.last).unwrap_or_default();
            return [prefix, before, marked, suffix].map(Cow::Borrowed).into();
        };
        let plain = answer.to_string();
        let answer = Some(answer).filter(|_| marks).and_then(|answer| marked(dialect, answer)).unwrap_or(plain);
        let comma = if self.list.is_empty() { "" } else { "," };
        vec![prefix.into(), self.list.as_str().into(), comma.into(), answer.into(), suffix.into()]
    }
}

/// The tool with the mark that makes the provider cache the request up to it.
fn marked(dialect: &dyn Dialect, mut tool: Value) -> Option<String> {
    let (key, mark) = dialect.tool_mark()?;
    tool.as_object_mut()?.insert(key.to_owned(), mark);
    Some(tool.to_string())
}
