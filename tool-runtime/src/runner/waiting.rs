//! Calls that wait for a person or a client: how they are suspended, decided, answered and closed.

pub(super) mod abandon;
pub(super) mod approval;
pub(super) mod approval_rules;
#[cfg(feature = "mcp-server")]
pub(crate) mod changed;
pub(super) mod client;
pub(super) mod comparison;
pub(crate) mod counting;
pub(super) mod decision;
pub(super) mod decision_lock;
pub(super) mod expired;
pub(super) mod grant;
pub(super) mod grants;
pub(super) mod labels;
pub(crate) mod late;
pub(super) mod names;
pub(super) mod notices;
#[cfg(feature = "mcp-server")]
pub(crate) mod outcome;
pub(crate) mod posting;
pub(super) mod resume_error;
pub(crate) mod settle;
pub(super) mod suspend;
#[cfg(feature = "tokens")]
pub(super) mod tokens;
pub(super) mod world;
