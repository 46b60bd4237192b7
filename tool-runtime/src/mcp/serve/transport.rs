//! Serves one client over a stream of lines, such as standard input and output, or many clients over a listening
//! socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{CONNECTION, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::BuildError;
use crate::mcp::serve::error::McpServerError;
use crate::mcp::serve::handler::Handler;
use crate::mcp::serve::heads::Heads;
use crate::mcp::serve::http::HttpService;
use crate::mcp::serve::raw::{self, Lines, MAX_MESSAGE_BYTES};
use crate::mcp::serve::seats::{Seats, Sits};
use crate::mcp::serve::strict::Strict;
use crate::mcp::serve::{HttpOptions, McpServer, abandoned};

/// The path of the server.
const PATH: &str = "/mcp";

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// The time limit for the last answers of connections, and again for their end.
const LAST: Duration = Duration::from_secs(2);

/// How long to wait after a connection could not be accepted, for example because no file descriptor is left.
const RETRY: Duration = Duration::from_millis(50);

struct Listener {
    server: McpServer,
    socket: TcpListener,
    service: HttpService,
    /// Fires when the sessions must end.
    ended: CancellationToken,
    seats: Arc<Seats>,
}

impl McpServer {
    /// Serves one client over standard input and output, until the client closes its end or the server is
    /// [closed](Self::close). Nothing else may write to standard output meanwhile.
    ///
    /// # Errors
    /// The client did not begin with the handshake of the protocol.
    pub async fn stdio(&self) -> Result<(), BuildError> {
        let (read, write) = rmcp::transport::stdio_pipes();
        self.stream(read, write).await
    }

    /// Serves one client over a stream of lines, such as a pipe or a socket. A request longer than 4 MiB is refused.
    ///
    /// # Errors
    /// The client did not begin with the handshake of the protocol.
    pub async fn stream<R, W>(&self, read: R, write: W) -> Result<(), BuildError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        abandoned::close_them(self);
        let transport =
            AsyncRwTransport::new(Lines::new(read), write).with_max_line_length(raw::longest(MAX_MESSAGE_BYTES));
        let transport = Strict::new(transport);
        let closed = self.0.calls.closed().child_token();
        let served =
            Box::pin(rmcp::service::serve_server_with_ct(Handler::new(self.clone()), transport, closed.clone())).await;
        match served {
            Ok(running) => {
                // A join error is a panic of the loop; the client sees the connection end.
                let _ = running.waiting().await;
                Ok(())
            }
            Err(_) if closed.is_cancelled() => Ok(()),
            Err(error) => Err(McpServerError::handshake(&error).into()),
        }
    }

    /// Listens on an address, and serves the path `/mcp`. Port 0 selects a free port. Web pages from loopback hosts
    /// with this port may call the server. Returns the address with the actual port, and a future that serves until the
    /// server is [closed](Self::close). The future resolves when the last connection has ended.
    ///
    /// The server speaks HTTP/1.1 without TLS: if clients connect from other machines, put a proxy with TLS in front of
    /// it. With [`HttpOptions::authorization`] it also serves the metadata that names the token issuers.
    ///
    /// ```
    /// use tool_runtime::mcp::serve::{HttpOptions, McpServer};
    ///
    /// # async fn example(server: McpServer) -> Result<(), Box<dyn std::error::Error>> {
    /// let (address, serving) = server.bind("127.0.0.1:0".parse()?, &HttpOptions::new()).await?;
    /// println!("listening on http://{address}/mcp");
    /// serving.await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Listening on the address fails, for example because another process uses it.
    pub async fn bind(
        &self,
        address: SocketAddr,
        options: &HttpOptions,
    ) -> Result<(SocketAddr, impl Future<Output = ()> + Send + use<>), BuildError> {
        let failed = |source| McpServerError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}:{}", address.port()));
        let origins: Vec<_> = own.into_iter().chain(options.origins.iter().cloned()).collect();
        let ended = CancellationToken::new();
        let service = self.service(options, &origins, ended.clone());
        let seats = Seats::new(options.max_connections.max(1), options.max_connections_each.max(1));
        let listener = Listener { server: self.clone(), socket: listener, service, ended, seats };
        Ok((address, listener.serve()))
    }
}

impl Listener {
    /// Serves until the server is closed, and returns when the last connection has ended.
    async fn serve(self) {
        let Self { server, socket, service, ended, seats } = self;
        let calls = &server.0.calls;
        let ending = CancellationToken::new();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = calls.closing().cancelled() => break,
                Some(_) = connections.join_next() => {}
                () = seats.freed() => {}
                taken = socket.accept(), if seats.has_room() => match taken {
                    Ok((stream, peer)) => match seats.take(peer.ip()) {
                        Some(sits) => {
                            connections.spawn(connection(stream, service.clone(), ending.clone(), sits));
                        }
                        None => tracing::debug!("a connection was refused because its address is at its limit"),
                    },
                    Err(error) => {
                        tracing::warn!(error = %error.kind(), "the connection of an MCP client could not be accepted");
                        tokio::time::sleep(RETRY).await;
                    }
                },
            }
        }
        drop(socket);
        calls.closed().cancelled().await;
        ending.cancel();
        let _ = tokio::time::timeout(LAST, all(&mut connections)).await;
        // Streams of notifications end with their sessions.
        ended.cancel();
        let _ = tokio::time::timeout(LAST, all(&mut connections)).await;
        connections.shutdown().await;
    }
}

async fn all(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. When `ending` fires, the connection accepts no further request.
async fn connection(stream: TcpStream, service: HttpService, ending: CancellationToken, sits: Sits) {
    let place = sits.place();
    let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        let service = service.clone();
        // The end of a chunked body is not tracked, so the connection accepts no request after it.
        let is_last = request.headers().contains_key(TRANSFER_ENCODING);
        request.extensions_mut().insert(place.clone());
        async move {
            let mut response = if request.uri().path() == PATH {
                service.answer(request).await
            } else {
                service.elsewhere(request.method(), request.uri().path())
            };
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut serving = pin!(server.serve_connection(TokioIo::new(Heads::new(stream)), service));
    tokio::select! {
        _ = &mut serving => return,
        () = sits.seat.leaves.cancelled() => return,
        () = ending.cancelled() => {}
    }
    serving.as_mut().graceful_shutdown();
    // An error means that the client went away.
    let _ = serving.await;
}
