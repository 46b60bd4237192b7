//! Tests of the store in memory, of the chain and of the documents.

mod accounts;
mod chain;
mod clocks;
mod documents;
mod effects;
mod erased;
mod forged;
mod ledger;
mod memory;
mod notices;
mod retention;
mod spoiled;
mod taking;
mod verify;
mod watched;
