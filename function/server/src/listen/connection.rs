//! A connection of a client, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::listen::unfinished::Unfinished;

/// The length of the first bytes of a client that speaks HTTP/2 (RFC 9113, section 3.4). The server
/// ends a connection that begins with other bytes.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// Without TLS for `--insecure`. With TLS, the handshake has verified the client's certificate.
pub type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// One type for both kinds, so that the server's generic code is compiled only once.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    /// None when the client has begun HTTP/2.
    unfinished: Option<Unfinished>,
    /// The number of the preface's bytes that are missing.
    missing: usize,
}

impl Connection {
    /// A connection whose client has to begin HTTP/2 in time.
    pub fn new(stream: Stream, unfinished: Unfinished) -> Self {
        Self {
            stream,
            unfinished: Some(unfinished),
            missing: PREFACE,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match &self.stream {
            Either::Left(stream) => stream.connect_info(),
            Either::Right(stream) => stream.get_ref().0.connect_info(),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let Some(unfinished) = &mut this.unfinished else {
            return Pin::new(&mut this.stream).poll_read(cx, buffer);
        };
        // Asked first, because a client may send one byte after the other.
        if unfinished.poll_over(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.missing = this.missing.saturating_sub(buffer.filled().len() - before);
        if this.missing == 0 {
            this.unfinished = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
