//! [`McpServerError`]: why a server was not built, or cannot serve.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ServerInitializeError;
use serde_json::json;

use crate::error::{BuildError, Problem};
use crate::mcp::serve::shutdown::Full;

/// Why a server was not built, or cannot serve.
#[derive(Debug)]
pub(super) enum McpServerError {
    /// The catalog has no such tool.
    Unknown {
        /// The name that the application wanted to expose.
        tool: String,
    },
    /// A tool would have a name that clients may reject.
    Name {
        /// The tool.
        tool: String,
    },
    /// Two tools would have the same name.
    Taken {
        /// The name.
        name: String,
    },
    /// The application's own clients execute the tool, so a server cannot.
    Client {
        /// The tool.
        tool: String,
    },
    /// Listening on the address failed.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The address of a protected server is invalid.
    Resource {
        /// The address.
        address: String,
    },
    /// A scope is invalid.
    Scope {
        /// The scope.
        scope: String,
    },
    /// Calls can be suspended for an approval that no person can give: the runner stores such calls only in its own
    /// memory.
    Unreachable {
        /// The rules of the policy that suspend calls.
        rules: Vec<String>,
    },
    /// The schema of this tool marks an argument to repeat in a header (`x-mcp-header`), and the mark is invalid.
    Header { tool: String, why: String },
    /// The client did not begin with the handshake of the protocol.
    Handshake,
}

impl McpServerError {
    /// Creates the error without the client's message, which can contain anything.
    pub(super) fn handshake(error: &ServerInitializeError) -> Self {
        let _ = error;
        Self::Handshake
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "mcp_tool_unknown",
            Self::Name { .. } => "mcp_name",
            Self::Taken { .. } => "mcp_name_taken",
            Self::Client { .. } => "mcp_client_tool",
            Self::Listen { .. } => "mcp_listen",
            Self::Resource { .. } => "mcp_resource",
            Self::Scope { .. } => "mcp_scope",
            Self::Unreachable { .. } => "mcp_unreachable",
            Self::Header { .. } => "mcp_header",
            Self::Handshake => "mcp_handshake",
        }
    }
}

impl fmt::Display for McpServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { tool } => write!(f, "the catalog has no tool `{}`", tool.escape_debug()),
            Self::Name { tool } => write!(
                f,
                "the exposed name of `{tool}` is not 1 to 128 ASCII letters, digits, `_`, `.` and `-`; write another"
            ),
            Self::Taken { name } => {
                write!(f, "two tools are exposed as `{name}`; give one of them another name with `expose`")
            }
            Self::Client { tool } => {
                write!(f, "`{tool}` is executed by a client of the application, so a server cannot offer it")
            }
            Self::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{address} is in use by another process; choose another port, or 0 for a free one")
            }
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Resource { address } => write!(
                f,
                "`{}` is not the address of a server; write one such as https://tools.example.org/mcp, without query \
                 and fragment",
                address.escape_debug()
            ),
            Self::Scope { scope } => write!(
                f,
                "`{}` is not a scope; write printable ASCII without spaces, `\"` and `\\`, one scope at a time",
                scope.escape_debug()
            ),
            Self::Unreachable { rules } => write!(
                f,
                "calls can wait for a person ({}), and no person can reach them: set a store that others share with \
                 `RunnerBuilder::store`, or `approvals(false)`",
                rules.join("; ")
            ),
            Self::Header { tool, why } => write!(
                f,
                "`{tool}`: {}; clients over HTTP exclude such a tool",
                // The texts contain names of properties and of headers.
                why.escape_debug()
            ),
            Self::Handshake => f.write_str("the client closed the connection or did not begin with `initialize`"),
        }
    }
}

impl From<McpServerError> for BuildError {
    fn from(error: McpServerError) -> Self {
        Problem::of(error.code(), error.to_string(), None).into()
    }
}

/// The first code of the range that JSON-RPC reserves for server-defined errors, -32000 to -32099.
pub(super) const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// Returns the error for a call that the server does not begin.
pub(super) fn full(why: Full) -> ErrorData {
    let (code, message) = match why {
        Full::Busy => ("busy", "The server is at its limit of running calls. Try again later."),
        Full::Closing => ("closing", "The server is closing. Try again later."),
    };
    ErrorData::new(SERVER_ERROR, message, Some(json!({"code": code})))
}

/// Returns the error for a repeated call whose result is being sent in answer to another request.
pub(super) fn sending() -> ErrorData {
    let message = "Another request is getting the result of the same call. Try again later.";
    ErrorData::new(SERVER_ERROR, message, Some(json!({"code": "sending"})))
}

/// Returns the error for a defect of the server, whose details are only for operators.
pub(super) fn broken() -> ErrorData {
    ErrorData::internal_error("The server failed.", None)
}
