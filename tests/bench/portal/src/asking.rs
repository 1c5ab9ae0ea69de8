//! One request again and again: how many answers a second, and how long each takes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HeaderMap;
use http::{Method, Uri};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::connection::{Body, Server, Session};
use crate::{Outcome, read, statistics};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The address
    address: Uri,
    /// The certificate authority of an address with https
    #[arg(long)]
    authority: Option<PathBuf>,
    /// The sessions, which take turns; without any, the server knows nobody
    #[arg(long)]
    sessions: Option<PathBuf>,
    /// A body to post
    #[arg(long)]
    body: Option<PathBuf>,
    /// How many rows each answer has
    #[arg(long)]
    rows: Option<usize>,
    /// How many ask at the same time
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// How long, in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// The shortest time between two requests of a connection, in milliseconds
    #[arg(long, default_value_t = 0)]
    pause: u64,
}

/// What one connection got.
#[derive(Default)]
struct Answers {
    took: Vec<Duration>,
    bytes: usize,
}

/// What is asked.
struct Question {
    server: Server,
    path: String,
    method: Method,
    body: Bytes,
    /// The headers of each session.
    headers: Vec<HeaderMap>,
    rows: Option<usize>,
    pause: Duration,
}

pub(crate) async fn run(arguments: &Arguments) -> Outcome<()> {
    let question = std::sync::Arc::new(Question::new(arguments)?);
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(arguments.seconds);
    let mut connections = JoinSet::new();
    for number in 0..arguments.connections {
        let question = std::sync::Arc::clone(&question);
        let of = arguments.connections;
        connections.spawn(async move { question.ask(number, of, end).await });
    }
    let mut all = Answers::default();
    while let Some(answers) = connections.join_next().await {
        let answers = answers??;
        all.took.extend(answers.took);
        all.bytes += answers.bytes;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let count = all.took.len();
    let result = json!({
        "answers": count,
        "seconds": seconds,
        "bytesEach": all.bytes / count.max(1),
        "latency": statistics::summary(all.took),
    });
    println!("{result}");
    Ok(())
}

impl Question {
    fn new(arguments: &Arguments) -> Outcome<Self> {
        let address = &arguments.address;
        let sessions: Vec<Session> = match &arguments.sessions {
            Some(path) => read(path)?,
            None => Vec::new(),
        };
        let origin = address.to_string();
        let origin = origin.trim_end_matches(address.path());
        let headers = sessions.iter().map(|session| match &arguments.body {
            Some(_) => session.writing(origin),
            None => session.headers(),
        });
        let mut headers: Vec<HeaderMap> = headers.collect::<Outcome<_>>()?;
        if headers.is_empty() {
            headers.push(HeaderMap::new());
        }
        let (method, body) = match &arguments.body {
            Some(path) => (Method::POST, std::fs::read(path)?),
            None => (Method::GET, Vec::new()),
        };
        Ok(Self {
            server: Server::new(address, arguments.authority.as_deref())?,
            path: address.path().to_owned(),
            method,
            body: body.into(),
            headers,
            rows: arguments.rows,
            pause: Duration::from_millis(arguments.pause),
        })
    }

    /// Asks until the end. This is connection `number` of `of`.
    async fn ask(&self, number: usize, of: usize, end: Instant) -> Outcome<Answers> {
        let mut sender = self.server.http1().await?;
        let mut answers = Answers::default();
        let mut turn = number;
        while Instant::now() < end {
            let headers = &self.headers[turn % self.headers.len()];
            turn += of;
            let request = self.server.request1(&self.path, headers);
            let request = request.method(self.method.clone());
            let request = request.body(Body::new(self.body.clone()))?;
            let asked = Instant::now();
            sender.ready().await?;
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            answers.took.push(asked.elapsed());
            answers.bytes += body.len();
            if !status.is_success() {
                let told = String::from_utf8_lossy(&body).into_owned();
                return Err(format!("{}: {status} {told}", self.path).into());
            }
            if answers.took.len() == 1 {
                self.check(&body)?;
            }
            let rest = self.pause.saturating_sub(asked.elapsed());
            if !rest.is_zero() {
                tokio::time::sleep(rest).await;
            }
        }
        Ok(answers)
    }

    fn check(&self, body: &[u8]) -> Outcome<()> {
        let Some(expected) = self.rows else {
            return Ok(());
        };
        let rows: Vec<Value> = serde_json::from_slice(body)?;
        if rows.len() == expected {
            return Ok(());
        }
        Err(format!("{}: {} rows, not {expected}", self.path, rows.len()).into())
    }
}
