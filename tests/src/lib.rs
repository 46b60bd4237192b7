//! Shared helpers of the tests.

pub mod blocks;
pub mod corpus;
pub mod hostile;
#[cfg(unix)]
pub mod kills;
pub mod long_runs;
pub mod modern;
#[cfg(unix)]
pub mod postgres;
pub mod provider;
pub mod recorded;
mod same;
pub mod server;
pub mod shown;
pub mod six_turns;
pub mod spans;
pub mod stored;
pub mod tree;
pub mod wire;
pub mod world;

pub use shown::{DecideShown, Shown, answering, never, pending_calls, question, queue};

use tool_runtime::call::Decider;

/// A decider for calls of runs without a tenant.
pub fn grace() -> Decider {
    Decider::new("grace")
}

/// The README's examples compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The guide's programs compile and run.
#[cfg(doctest)]
mod guide {
    macro_rules! chapters {
        ($($name:ident: $file:literal),* $(,)?) => {
            $(#[doc = include_str!(concat!("../../docs/src/", $file))] pub struct $name;)*
        };
    }

    chapters! {
        Introduction: "introduction.md",
        FirstTool: "first-tool.md",
        Attributes: "attributes.md",
        TenTypes: "ten-types.md",
        Identities: "identities.md",
        Policy: "policy.md",
        Cedar: "cedar.md",
        Injection: "injection.md",
        Models: "models.md",
        Service: "service.md",
        Approvals: "approvals.md",
        Graphs: "graphs.md",
        CodeMode: "code-mode.md",
        Connections: "connections.md",
        OAuth: "oauth.md",
        Features: "features.md",
        ForeignTypes: "foreign-types.md",
        Testing: "testing.md",
        Picking: "picking.md",
        Lock: "lock.md",
        Engines: "engines.md",
        Mcp: "mcp.md",
        McpApprovals: "mcp-approvals.md",
        McpServers: "mcp-servers.md",
        Desktop: "desktop.md",
        WhichStore: "which-store.md",
        Retries: "retries.md",
        Crashes: "crashes.md",
        Notices: "notices.md",
        Deployment: "deployment.md",
        Operating: "operating.md",
        Machines: "machines.md",
        Logging: "logging.md",
        Stores: "store.md",
        Database: "database.md",
        Auditing: "auditing.md",
        CommandLine: "command-line.md",
        Glossary: "glossary.md",
    }
}
