//! A server on this machine that answers the SDK's calls as a test says, and records them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server that gives the answers of a test.
pub(crate) struct Wire {
    /// The URL of the server.
    pub(crate) endpoint: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request of the SDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The id of the access key that signed the request; none without a signature.
    pub(crate) signed_by: Option<String>,
    /// The fields of the body's form, still percent-encoded.
    fields: Vec<String>,
}

impl Asked {
    /// The value of a field of the form, percent-encoded.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut pairs = self.fields.iter().filter_map(|field| field.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        Some(value)
    }

    fn read(request: &str) -> Self {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let key = head.split("Credential=").nth(1);
        let key = key.and_then(|rest| rest.split('/').next());
        Self {
            signed_by: key.map(str::to_owned),
            fields: body.split('&').map(str::to_owned).collect(),
        }
    }
}

impl Wire {
    /// A server that gives these answers, each a status and a body in XML, one after the other, and
    /// then the last one again.
    pub(crate) fn answering(answers: Vec<(u16, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let answers = answers.into_iter().map(|(status, body)| {
            format!(
                "HTTP/1.1 {status} Any\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            )
        });
        let answers: Vec<String> = answers.collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let answer = answers.get(number).or(answers.last()).unwrap();
                let mut stream = stream.unwrap();
                record
                    .lock()
                    .unwrap()
                    .push(Asked::read(&request(&mut stream)));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { endpoint, asked }
    }

    /// The requests until now.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads a whole request.
fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part).unwrap();
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}
