//! Many browsers with an open page, and what is done to them, one line of JSON after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::browser::Browser;
use crate::changes::{Claims, Written};
use crate::connection::{CHROMIUM, SMALLEST, Server, Session};
use crate::latency::{Fate, State, fate};
use crate::seen::{Clock, Numbers, Shared};
use crate::{Outcome, bare, claims, read, statistics};

/// The pace at which browsers come.
const COMING: Duration = Duration::from_millis(5);
/// How long everybody may take until they have seen something.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(50);
/// How many changes fill the smallest window of a page that does not read: a row has 500 bytes at least.
const FILLING: usize = 200;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The portal
    portal: Uri,
    /// Its certificate authority
    #[arg(long)]
    authority: PathBuf,
    /// The administrator's kubeconfig
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The sessions, one for each browser, ordered by namespace
    #[arg(long)]
    sessions: PathBuf,
}

/// What is to be done.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
enum Command {
    /// All browsers come, and stay.
    Open,
    /// Claims change at a pace.
    #[serde(rename_all = "camelCase")]
    Change { seconds: u32, per_second: u32 },
    /// More pages of the first sessions come, which stop reading, and so much changes that their streams wait.
    Stall { count: usize },
    /// Claims change as fast as possible.
    Flood { changes: usize },
    /// The pages that stopped reading go on.
    Resume,
    /// The portal will be killed. Claims change meanwhile, and all browsers must be right in the end.
    Fall,
}

struct Crowd {
    server: Server,
    sessions: Vec<Session>,
    claims: Claims,
    numbers: Arc<Numbers>,
    clock: Clock,
    bare: Arc<Shared>,
    /// The browsers, each with the number of the claim that it sees.
    browsers: Vec<(usize, Arc<Shared>)>,
    stalled: Vec<Arc<Shared>>,
    reads: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

pub(crate) async fn run(arguments: &Arguments) -> Outcome<()> {
    let mut crowd = Crowd::new(arguments).await?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let told = match serde_json::from_str(&line)? {
            Command::Open => crowd.open().await?,
            Command::Change {
                seconds,
                per_second,
            } => crowd.change(seconds, per_second).await?,
            Command::Stall { count } => crowd.stall(count).await?,
            Command::Flood { changes } => crowd.flood(changes, crowd.claims.count()).await?,
            Command::Resume => crowd.resume().await,
            Command::Fall => crowd.fall().await?,
        };
        println!("{told}");
    }
    Ok(())
}

impl Crowd {
    async fn new(arguments: &Arguments) -> Outcome<Self> {
        let clock = Clock::start();
        let client = claims::client(&arguments.kubeconfig).await?;
        let sessions: Vec<Session> = read(&arguments.sessions)?;
        let mut namespaces: Vec<String> =
            sessions.iter().map(|one| one.namespace.clone()).collect();
        namespaces.dedup();
        let claims = Claims::new(client.clone(), namespaces, clock);
        let numbers = Arc::new(claims.numbers());
        Ok(Self {
            server: Server::new(&arguments.portal, Some(&arguments.authority))?,
            sessions,
            claims,
            bare: bare::watch(client, Arc::clone(&numbers), clock).await?,
            numbers,
            clock,
            browsers: Vec::new(),
            stalled: Vec::new(),
            reads: watch::Sender::new(false),
            tasks: JoinSet::new(),
        })
    }

    fn comes(&mut self, session: &Session, stops: bool) -> Outcome<Arc<Shared>> {
        let seen = Arc::new(Shared::default());
        let browser = Browser {
            server: self.server.clone(),
            headers: session.headers()?,
            windows: if stops { SMALLEST } else { CHROMIUM },
            numbers: Arc::clone(&self.numbers),
            clock: self.clock,
            seen: Arc::clone(&seen),
            reads: stops.then(|| self.reads.subscribe()),
        };
        self.tasks.spawn(browser.stay());
        Ok(seen)
    }

    async fn open(&mut self) -> Outcome<Value> {
        let begun = self.clock.now();
        for session in self.sessions.clone() {
            let claim = self.claims.number(&session.namespace);
            let claim = claim.ok_or("a session without a claim")?;
            let seen = self.comes(&session, false)?;
            self.browsers.push((claim, seen));
            tokio::time::sleep(COMING).await;
        }
        let absent = self.until_all(|seen, _| seen.lock().live.is_some()).await;
        let seconds = self.clock.since(begun).as_secs_f64();
        Ok(json!({"browsers": self.browsers.len(), "absent": absent, "seconds": seconds}))
    }

    async fn change(&mut self, seconds: u32, per_second: u32) -> Outcome<Value> {
        self.forget();
        let each = Duration::from_secs(1) / per_second;
        let written = self.claims.at_pace(seconds * per_second, each).await?;
        self.until_all_know(&written).await;
        Ok(self.judged(&written))
    }

    async fn stall(&mut self, count: usize) -> Outcome<Value> {
        let sessions: Vec<Session> = self.sessions.iter().take(count).cloned().collect();
        for session in &sessions {
            let seen = self.comes(session, true)?;
            self.stalled.push(seen);
        }
        let stalled = self.stalled.clone();
        let absent = until(|| {
            let all = stalled.iter();
            all.filter(|seen| seen.lock().live.is_none()).count()
        });
        let absent = absent.await;
        let last = sessions
            .last()
            .and_then(|one| self.claims.number(&one.namespace));
        let namespaces = last.map_or(0, |last| last + 1);
        let flood = self.flood(FILLING * namespaces, namespaces).await?;
        Ok(json!({"stalled": count, "absent": absent, "flood": flood}))
    }

    async fn flood(&self, changes: usize, claims: usize) -> Outcome<Value> {
        let begun = self.clock.now();
        let written = self.claims.at_once(changes, claims).await?;
        let seconds = self.clock.since(begun).as_secs_f64();
        let behind = self.until_all_know(&written).await;
        Ok(json!({"changes": written.len(), "seconds": seconds, "behind": behind}))
    }

    async fn resume(&mut self) -> Value {
        self.reads.send_replace(true);
        let stalled = &self.stalled;
        let untold = until(|| {
            let all = stalled.iter();
            all.filter(|seen| seen.lock().resets == 0).count()
        });
        let untold = untold.await;
        json!({"stalled": stalled.len(), "untold": untold})
    }

    async fn fall(&mut self) -> Outcome<Value> {
        for (_, seen) in &self.browsers {
            let mut seen = seen.lock();
            seen.requests = 0;
            seen.resets = 0;
        }
        let fell = self.clock.now();
        println!("{}", json!({"ready": true}));
        let count = self.claims.count();
        let written = self.claims.at_once(count, count).await?;
        let absent = self
            .until_all(|seen, _| seen.lock().live > Some(fell))
            .await;
        let wrong = self.until_all_know(&written).await;
        let mut live = Vec::new();
        let mut requests = Vec::new();
        let mut over = 0;
        for (_, seen) in &self.browsers {
            let seen = seen.lock();
            live.extend(seen.live.map(|live| live.saturating_sub(fell)));
            requests.push(seen.requests);
            over += usize::from(seen.is_over);
        }
        Ok(json!({
            "live": statistics::summary(live),
            "absent": absent,
            "wrong": wrong,
            "signedOut": over,
            "mostRequests": requests.iter().max(),
            "requests": requests.iter().sum::<u32>(),
        }))
    }

    fn forget(&self) {
        for seen in self
            .browsers
            .iter()
            .map(|(_, seen)| seen)
            .chain([&self.bare])
        {
            seen.lock().states.clear();
        }
    }

    /// Waits until all browsers show the newest state of their claims. Returns how many do not.
    async fn until_all_know(&self, written: &[Written]) -> usize {
        let mut newest = vec![0; self.claims.count()];
        for State { claim, version, .. } in written.iter().map(|written| written.state) {
            newest[claim] = version.max(newest[claim]);
        }
        let knows = |seen: &Shared, claim: usize| {
            seen.lock().shown.get(&claim).copied().unwrap_or_default() >= newest[claim]
        };
        self.until_all(knows).await
    }

    /// Waits until something is so for all browsers. Returns for how many it is not.
    async fn until_all(&self, is_so: impl Fn(&Shared, usize) -> bool) -> usize {
        until(|| {
            let all = self.browsers.iter();
            all.filter(|(claim, seen)| !is_so(seen, *claim)).count()
        })
        .await
    }

    fn judged(&self, written: &[Written]) -> Value {
        let states: Vec<State> = written.iter().map(|written| written.state).collect();
        let bare = fate(&states, &self.bare.lock().states);
        let mut all = Fate::default();
        for (number, seen) in &self.browsers {
            let own = states.iter().filter(|state| state.claim == *number);
            all.add(fate(own, &seen.lock().states));
        }
        json!({
            "changes": written.len(),
            "writes": statistics::summary(written.iter().map(|written| written.took).collect()),
            "bareLost": bare.lost,
            "bare": statistics::summary(bare.took),
            "lost": all.lost,
            "superseded": all.superseded,
            "browsers": statistics::summary(all.took),
        })
    }
}

/// Waits until none is left, for a minute at most. Returns how many are left.
async fn until(left: impl Fn() -> usize) -> usize {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let now = left();
        if now == 0 || tokio::time::Instant::now() > end {
            return now;
        }
        tokio::time::sleep(LOOK).await;
    }
}
