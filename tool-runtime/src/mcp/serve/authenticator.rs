//! [`Authenticator`]: determines the party (principal, tenant and roles) that a request acts for.

use std::fmt;

use async_trait::async_trait;
use http::request::Parts;
use rmcp::model::Extensions;

use crate::mcp::serve::auth::Verified;
use crate::runner::RunOptions;

/// Decides on whose behalf a request acts. The returned options name the principal, tenant, roles, attributes, tools,
/// session and connections of its run.
///
/// The server calls it for every request about tools or tasks, even within a session. A session belongs to the party
/// that began it: a request is refused if its principal, tenant, roles, attributes, tools or connections differ. A
/// client's description of itself is not an identity, so [`Peer`] does not contain it. The server passes the
/// credentials of a request to no other service.
///
/// Implementations need `#[async_trait]`. If no `.await` is needed, a closure is enough.
///
/// ```
/// use async_trait::async_trait;
/// use tool_runtime::RunOptions;
/// use tool_runtime::mcp::serve::{Authenticator, Peer};
///
/// /// The user that the application's own layer authenticated.
/// #[derive(Clone)]
/// struct User(String);
///
/// struct Users;
///
/// #[async_trait]
/// impl Authenticator for Users {
///     async fn authenticate(&self, peer: &Peer<'_>) -> Option<RunOptions> {
///         let User(name) = peer.extension::<User>()?;
///         Some(RunOptions::new().principal(name.as_str()).tenant("acme"))
///     }
/// }
/// ```
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Returns the options of the run for the request; `None` refuses the request.
    async fn authenticate(&self, peer: &Peer<'_>) -> Option<RunOptions>;
}

#[async_trait]
impl<F: Fn(&Peer<'_>) -> Option<RunOptions> + Send + Sync> Authenticator for F {
    async fn authenticate(&self, peer: &Peer<'_>) -> Option<RunOptions> {
        self(peer)
    }
}

/// Facts about the client of one request, taken from its connection.
///
/// [`Authenticator`] has an example.
pub struct Peer<'a> {
    /// `None` for a client that is not connected over HTTP.
    request: Option<&'a Parts>,
}

impl<'a> Peer<'a> {
    pub(super) fn of(extensions: &'a Extensions) -> Self {
        Self { request: extensions.get() }
    }

    /// Whether the request came over HTTP. Otherwise the client is at the other end of a pipe that this process or its
    /// parent opened.
    #[must_use]
    pub const fn is_http(&self) -> bool {
        self.request.is_some()
    }

    /// Returns a header of the request. `None` if the request did not come over HTTP, has no such header, or the value
    /// is not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.request?.headers.get(name)?.to_str().ok()
    }

    /// Returns the verified bearer token of the request. `None` if the server requires no token
    /// ([`HttpOptions::authorization`](crate::mcp::serve::HttpOptions::authorization)).
    #[must_use]
    pub fn verified(&self) -> Option<&'a Verified> {
        self.extension()
    }

    /// Returns a value that a layer in front of the server put into the extensions of the HTTP request.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.request?.extensions.get()
    }
}

// Headers contain credentials.
impl fmt::Debug for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("is_http", &self.is_http()).finish_non_exhaustive()
    }
}
