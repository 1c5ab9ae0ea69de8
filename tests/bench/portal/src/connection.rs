//! Connections to a server, with and without TLS.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{COOKIE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Uri};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Outcome;

/// The body of a request.
pub(crate) type Body = Full<Bytes>;

/// What Chromium lets a server send before it reads: for each stream, and for a connection
/// (`kSpdyStreamMaxRecvWindowSize` and `kSpdySessionMaxRecvWindowSize` in `net/http/http_network_session.cc`).
pub(crate) const CHROMIUM: [u32; 2] = [6 * 1024 * 1024, 15 * 1024 * 1024];
/// The smallest windows that a client has (RFC 9113, 6.9.2).
pub(crate) const SMALLEST: [u32; 2] = [65_535, 65_535];

/// A server.
#[derive(Clone)]
pub(crate) struct Server {
    host: String,
    port: u16,
    authority: HeaderValue,
    tls: Option<Arc<RootCertStore>>,
}

impl Server {
    /// The server of an address. `authorities` is the file with the certificate authority of TLS.
    pub(crate) fn new(address: &Uri, authorities: Option<&Path>) -> Outcome<Self> {
        let host = address.host().ok_or("the address has no host")?;
        let port = address.port_u16().ok_or("the address has no port")?;
        let mut known = RootCertStore::empty();
        for certificate in authorities
            .map(CertificateDer::pem_file_iter)
            .transpose()?
            .into_iter()
            .flatten()
        {
            known.add(certificate?)?;
        }
        let is_tls = address.scheme_str() == Some("https");
        Ok(Self {
            host: host.to_owned(),
            port,
            authority: HeaderValue::from_str(&format!("{host}:{port}"))?,
            tls: is_tls.then(|| Arc::new(known)),
        })
    }

    /// A connection of HTTP/1.1.
    pub(crate) async fn http1(&self) -> Outcome<http1::SendRequest<Body>> {
        let stream = self.tcp().await?;
        let Some(known) = &self.tls else {
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            return Ok(sender);
        };
        let stream = self.tls(stream, known, b"http/1.1").await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// A connection of HTTP/2 over TLS, with the windows of a stream and of the connection.
    pub(crate) async fn http2(&self, windows: [u32; 2]) -> Outcome<http2::SendRequest<Body>> {
        let known = self
            .tls
            .as_ref()
            .ok_or("browsers speak HTTP/2 over TLS only")?;
        let stream = self.tls(self.tcp().await?, known, b"h2").await?;
        let [of_stream, of_connection] = windows;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(of_stream)
            .initial_connection_window_size(of_connection)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn tcp(&self) -> Outcome<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn tls(
        &self,
        stream: TcpStream,
        known: &Arc<RootCertStore>,
        protocol: &[u8],
    ) -> Outcome<TlsStream<TcpStream>> {
        // Without what it remembers of earlier connections: each one is that of another browser.
        let mut config = ClientConfig::builder()
            .with_root_certificates(Arc::clone(known))
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(self.host.clone())?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(connector.connect(name, stream).await?)
    }

    /// A request of HTTP/1.1.
    pub(crate) fn request1(&self, path: &str, headers: &HeaderMap) -> http::request::Builder {
        let mut request = Request::builder().uri(path).header(HOST, &self.authority);
        if let Some(all) = request.headers_mut() {
            all.extend(headers.clone());
        }
        request
    }

    /// A request of HTTP/2.
    pub(crate) fn request2(&self, path: &str, headers: &HeaderMap) -> Outcome<Request<Body>> {
        let authority = self.authority.to_str()?;
        let mut request = Request::builder().uri(format!("https://{authority}{path}"));
        if let Some(all) = request.headers_mut() {
            all.extend(headers.clone());
        }
        Ok(request.body(Body::default())?)
    }
}

/// A session of a person who has signed in.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct Session {
    /// The person's namespace.
    pub(crate) namespace: String,
    /// The value of the header `Cookie`.
    pub(crate) cookie: String,
    /// The value of the header `X-XSRF-TOKEN`.
    pub(crate) token: String,
}

impl Session {
    /// The header by which the portal knows the session.
    pub(crate) fn headers(&self) -> Outcome<HeaderMap> {
        Ok(HeaderMap::from_iter([(COOKIE, self.cookie.parse()?)]))
    }

    /// The headers of a request that writes, as the portal's own page sends it.
    pub(crate) fn writing(&self, origin: &str) -> Outcome<HeaderMap> {
        let mut headers = self.headers()?;
        for (name, value) in [
            ("origin", origin),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
            ("x-xsrf-token", &self.token),
        ] {
            headers.insert(HeaderName::from_static(name), value.parse()?);
        }
        Ok(headers)
    }
}
