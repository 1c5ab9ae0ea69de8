//! Fake HTTP servers. They record their requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

pub type Answer = (u16, String);

pub struct Server {
    pub port: u16,
    /// The server's certificate; none for a server without TLS.
    pub certificate: Option<String>,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(None, answer)
    }

    pub fn start_tls(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let names = vec!["127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let mut server = Self::serve(Some(Arc::new(config)), answer);
        server.certificate = Some(cert.pem());
        server
    }

    fn serve(
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                let (stream, tls) = (stream.unwrap(), tls.clone());
                thread::spawn(move || match tls {
                    None => attend(stream, &kept, &*answer),
                    Some(config) => {
                        let session = ServerConnection::new(config).unwrap();
                        attend(StreamOwned::new(session, stream), &kept, &*answer)
                    }
                });
            }
        });
        Self {
            port,
            certificate: None,
            asked,
        }
    }

    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    pub fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

/// Handles one request. If the client sends nothing or does not trust the certificate, the server
/// closes the connection.
fn attend<S: Read + Write>(
    stream: S,
    kept: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Answer,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: String::new(),
    };
    let length = request
        .header("content-length")
        .unwrap_or("0")
        .parse()
        .unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).unwrap();
    let (status, text) = answer(&request);
    kept.lock().unwrap().push(request);
    let length = text.len();
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let stream = stream.get_mut();
    stream.write_all((head + &text).as_bytes()).ok()?;
    stream.flush().ok()
}

/// The metadata service of a spot instance with a role. `more` answers further paths.
pub fn metadata(more: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Server {
    Server::start(move |request| {
        let refused = (401, String::new());
        if request.method == "PUT" {
            let asks = request.header("X-aws-ec2-metadata-token-ttl-seconds");
            let is_right = request.path == "/latest/api/token" && asks.is_some();
            return if is_right {
                (200, "session".into())
            } else {
                refused
            };
        }
        if request.header("X-aws-ec2-metadata-token") != Some("session") {
            return refused;
        }
        let Some(path) = request.path.strip_prefix("/latest/meta-data/") else {
            return (404, String::new());
        };
        let known = match path {
            "instance-id" => Some("i-0123456789abcdef0".to_owned()),
            "placement/region" => Some("eu-central-1".to_owned()),
            "iam/security-credentials/" => Some("workspace".to_owned()),
            "iam/security-credentials/workspace" => Some(CREDENTIALS.to_owned()),
            path => more(path),
        };
        known.map_or((404, String::new()), |text| (200, text))
    })
}

pub const ACCESS_KEY: &str = "ASIAEXAMPLE";
pub const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const SESSION_TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLE//token==";
const CREDENTIALS: &str = r#"{
  "Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-11-22T10:00:00Z",
  "AccessKeyId": "ASIAEXAMPLE",
  "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  "Token": "IQoJb3JpZ2luX2VjEXAMPLE//token==",
  "Expiration": "2026-11-22T16:00:00Z"
}"#;
