//! A connection of a client, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// The first bytes of a client that speaks HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One type for both kinds, so that the server's generic code is compiled only once.
#[derive(Debug)]
pub struct Connection {
    stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    /// Bytes of the client that are read before the others.
    first: Vec<u8>,
}

impl Connection {
    /// A connection without TLS, for `--insecure`.
    pub fn plain(stream: TcpStream) -> Self {
        Self::begin(Either::Left(stream))
    }

    /// A connection with TLS. The handshake has verified the client's certificate.
    pub fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self::begin(Either::Right(Box::new(stream)))
    }

    fn begin(stream: Either<TcpStream, Box<TlsStream<TcpStream>>>) -> Self {
        let first = Vec::new();
        Self { stream, first }
    }

    /// Waits until the client begins HTTP/2. The server still reads these bytes. It answers a client
    /// that speaks another protocol.
    pub async fn await_preface(&mut self) -> io::Result<()> {
        let mut first = [0; PREFACE.len()];
        let mut length = 0;
        while length < PREFACE.len() && PREFACE.starts_with(&first[..length]) {
            let read = self.stream.read(&mut first[length..]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            length += read;
        }
        self.first = first[..length].to_vec();
        Ok(())
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
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let length = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..length]);
        self.first.drain(..length);
        Poll::Ready(Ok(()))
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
