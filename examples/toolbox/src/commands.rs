//! The commands that this application adds: recorded responses and calls, for people who look into what models sent.

mod hydrate;
mod replay;
mod wire;

pub(crate) use hydrate::Hydrate;
pub(crate) use replay::Replay;
pub(crate) use wire::Wire;
