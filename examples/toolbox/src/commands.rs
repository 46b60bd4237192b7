//! The application's commands, which inspect recorded responses and calls of models.

mod hydrate;
mod replay;
mod wire;

pub(crate) use hydrate::Hydrate;
pub(crate) use replay::Replay;
pub(crate) use wire::Wire;
