//! Serving one client over a stream of lines, such as standard input and output.

use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::BuildError;
use crate::mcp::serve::McpServer;
use crate::mcp::serve::abandoned;
use crate::mcp::serve::error::McpServerError;
use crate::mcp::serve::handler::Handler;
use crate::mcp::serve::raw::{self, Lines, MAX_MESSAGE_BYTES};
use crate::mcp::serve::strict::Strict;

impl McpServer {
    /// Serves one client over standard input and output, until it closes its end or the server is
    /// [closed](Self::close). Nothing else may write to standard output meanwhile.
    ///
    /// # Errors
    /// The client did not begin with the handshake of the protocol.
    pub async fn stdio(&self) -> Result<(), BuildError> {
        let (read, write) = rmcp::transport::stdio_pipes();
        self.stream(read, write).await
    }

    /// Serves one client over a stream of lines, such as a pipe or a socket.
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
}
