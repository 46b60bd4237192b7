//! [`NoticeRule`]: the events of calls that a webhook receives, and the contents of its notices.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::json::canonical::to_text;
use crate::json::{self, Limits};
use crate::policy::parse;
use crate::tool::ToolSpec;

/// An event of a call that a webhook can receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeEvent {
    /// The call begins to wait, or its question to the deciders changes.
    Waiting,
    /// The call no longer waits: a person or its client decided on it, or it was abandoned.
    Decided,
    /// The deadline passed without a decision.
    Expired,
    /// The outcome of the call is unknown.
    Unknown,
}

impl NoticeEvent {
    const ALL: [Self; 4] = [Self::Waiting, Self::Decided, Self::Expired, Self::Unknown];

    /// Returns the type of the event in the payload.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Waiting => "call.waiting",
            Self::Decided => "call.decided",
            Self::Expired => "call.expired",
            Self::Unknown => "call.unknown",
        }
    }
}

/// The notices about calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoticeRule {
    /// The events; all of them by default.
    pub events: BTreeSet<NoticeEvent>,
    /// The link to the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkTemplate>,
    /// The arguments that notices contain, by tool.
    #[serde(deserialize_with = "parse::named_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ListedArguments>,
}

impl Default for NoticeRule {
    fn default() -> Self {
        Self { events: NoticeEvent::ALL.into(), link: None, tools: BTreeMap::new() }
    }
}

/// The arguments that notices about one tool contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListedArguments {
    /// The JSON Pointers of the arguments.
    pub arguments: BTreeSet<String>,
}

/// A URL with placeholders for the ids of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct LinkTemplate(String);

const PLACES: [&str; 4] = ["{run}", "{call}", "{tenant}", "{principal}"];

/// The longest template, in bytes.
const LONGEST_LINK: usize = 2048;

impl TryFrom<String> for LinkTemplate {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default()).unwrap_or_default();
        // A placeholder in the host would let an id choose the server. Text before `@` can be a password.
        if host.is_empty() || host.contains(['{', '}', '@']) || text.len() > LONGEST_LINK {
            return Err(
                "write a link that begins with `https://` and a host, without a user or a placeholder in the host",
            );
        }
        let rest = PLACES.iter().fold(text.clone(), |rest, place| rest.replace(place, ""));
        if rest.contains(['{', '}']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a link can contain {run}, {call}, {tenant} and {principal}, and no other braces or spaces");
        }
        Ok(Self(text))
    }
}

/// The ids of a call, for its link.
pub(crate) struct LinkIds<'a> {
    pub(crate) run: &'a str,
    pub(crate) call: &'a str,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) principal: Option<&'a str>,
}

impl LinkTemplate {
    /// Returns the link to a call. The ids are percent-encoded, so that none changes the rest of the URL. `None` if an
    /// id consists only of dots, which name a folder even if they are encoded (WHATWG URL, 4.2).
    pub(crate) fn link(&self, ids: &LinkIds<'_>) -> Option<String> {
        let (mut link, mut rest) = (String::new(), self.0.as_str());
        while let Some((before, after)) = rest.split_once('{') {
            link.push_str(before);
            let (place, after) = after.split_once('}').unwrap_or((after, ""));
            let id = match place {
                "run" => ids.run,
                "call" => ids.call,
                "tenant" => ids.tenant.unwrap_or_default(),
                _ => ids.principal.unwrap_or_default(),
            };
            if !id.is_empty() && id.bytes().all(|byte| byte == b'.') {
                return None;
            }
            encode(&mut link, id);
            rest = after;
        }
        link.push_str(rest);
        Some(link)
    }
}

/// Appends a string, in which all bytes except unreserved ones (RFC 3986, 2.3) are percent-encoded.
fn encode(link: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            link.push(char::from(byte));
        } else {
            link.push('%');
            let digit = |four: u8| char::from(if four < 10 { b'0' + four } else { b'A' + four - 10 });
            link.extend([digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The policy's terms for the notices about one call. The documents of the call contain a copy, so that every process
/// that ends the call writes the same notices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoticeTerms {
    pub(crate) events: BTreeSet<NoticeEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<LinkTemplate>,
    /// The JSON Pointers of the listed arguments of the call that needs a decision.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) arguments: BTreeSet<String>,
    /// The JSON Pointers of the listed arguments of the graph that made this call and waits for it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) of_graph: BTreeSet<String>,
    /// The sentence of the tool's author about a call that began, or about the call that a graph waits for. The
    /// document of any other waiting call has its own sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sentence: Option<String>,
}

/// The longest listed argument, in bytes of JSON.
const LONGEST_ARGUMENT: usize = 1024;

impl NoticeTerms {
    /// Returns the listed arguments that the masked arguments `shown` contain, as JSON. An argument of more than 1,024
    /// bytes is left out.
    pub(crate) fn listed(&self, shown: &str) -> BTreeMap<&str, String> {
        if self.arguments.is_empty() {
            return BTreeMap::new();
        }
        let Ok(shown) = json::parse(shown, &Limits::UNBOUNDED) else { return BTreeMap::new() };
        let listed = self.arguments.iter().filter_map(|pointer| {
            let text = to_text(shown.pointer(pointer)?);
            (text.len() <= LONGEST_ARGUMENT).then_some((pointer.as_str(), text))
        });
        listed.collect()
    }
}

impl NoticeRule {
    /// Returns the terms for calls of a tool, with the listed arguments that `also` accepts.
    pub(super) fn terms(&self, tool: &str, also: impl Fn(&str) -> bool) -> NoticeTerms {
        let listed = self.tools.get(tool).into_iter().flat_map(|listed| &listed.arguments);
        NoticeTerms {
            events: self.events.clone(),
            link: self.link.clone(),
            arguments: listed.filter(|pointer| also(pointer)).cloned().collect(),
            of_graph: BTreeSet::new(),
            sentence: None,
        }
    }

    /// Returns this rule with only the arguments that both rules list.
    pub(super) fn listing_as(&self, other: &Self) -> Self {
        let both = self.tools.iter().map(|(tool, listed)| {
            let arguments = listed.arguments.iter().filter(|pointer| other.lists(tool, pointer)).cloned().collect();
            (tool.clone(), ListedArguments { arguments })
        });
        Self { tools: both.filter(|(_, listed)| !listed.arguments.is_empty()).collect(), ..self.clone() }
    }

    /// Whether notices about a tool list this argument.
    pub(super) fn lists(&self, tool: &str, pointer: &str) -> bool {
        self.tools.get(tool).is_some_and(|listed| listed.arguments.contains(pointer))
    }

    /// Reports empty lists.
    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        if self.events.is_empty() {
            let message = "an empty list sends nothing; name an event or remove the table `notices`";
            problems.push(Problem::policy("notices.events".to_owned(), message.to_owned()));
        }
        for (tool, _) in self.tools.iter().filter(|(_, listed)| listed.arguments.is_empty()) {
            let message = "this lists nothing; write `arguments`, or remove the table";
            problems.push(Problem::policy(format!("notices.tools.{tool}"), message.to_owned()));
        }
    }

    /// Reports listed arguments that the tool does not have, or that are sensitive.
    pub(super) fn check_tool(
        &self,
        spec: &ToolSpec,
        resolve: impl Fn(&str) -> Result<(), (String, Option<String>)>,
        problems: &mut Vec<Problem>,
    ) {
        let name = spec.name.as_str();
        let Some(listed) = self.tools.get(name) else { return };
        for pointer in &listed.arguments {
            let path = format!("notices.tools.{name}.arguments");
            let first = crate::text::pointer::split(pointer).and_then(|mut segments| segments.next());
            match (first, resolve(pointer)) {
                (None, _) => {
                    let message = format!("`{pointer}` is not an argument; write a JSON Pointer such as `/amount`");
                    problems.push(Problem::policy(path, message));
                }
                (Some(first), _) if spec.sensitive.iter().any(|sensitive| **sensitive == *first) => {
                    let message = format!("`{pointer}` is sensitive, so no notice lists it; remove it");
                    problems.push(Problem::policy(path, message));
                }
                (_, Err((message, nearest))) => problems.push(Problem::policy(path, message).with_nearest(nearest)),
                (_, Ok(())) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_changes_the_rest_of_the_link() {
        let template = LinkTemplate::try_from("https://app.example/{tenant}/a{run}/{call}?by={principal}".to_owned());
        let link = |run, call| {
            let ids = LinkIds { run, call, tenant: None, principal: Some("ada & co") };
            template.clone().unwrap().link(&ids)
        };
        let linked = |path: &str| Some(format!("https://app.example//a{path}?by=ada%20%26%20co"));
        assert_eq!(link("run/1", "c?1#"), linked("run%2F1/c%3F1%23"));
        assert_eq!(link("..a", "1.5"), linked("..a/1.5"));
        assert_eq!(link("{call}", "%2E%2E"), linked("%7Bcall%7D/%252E%252E"));
        for (run, call) in [("run", ".."), ("run", "."), ("..", "c"), ("run", "...")] {
            assert_eq!(link(run, call), None, "{run} {call}");
        }
    }
}
