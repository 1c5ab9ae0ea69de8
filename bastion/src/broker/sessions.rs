//! The broker's side of a connection: the keys of an account, or one session.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bastion_core::accounts::{Accounts, Credential, Key};
use bastion_core::audit::Event;
use bastion_core::certificates::shown;
use bastion_core::grants::{Grant, line, principal};
use bastion_core::processes::{Process, connection};
use bastion_core::protocol::{Answer, Ask, Welcome};
use devctl_core::host::Refused;
use devctl_core::problem::{Code, Problem};
use jiff::Timestamp;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tracing::{info, warn};

use super::agent::Agent;
use super::api::Person;
use super::limits::Place;
use super::processes::{is_alive, peer, remember};
use super::random::bytes;
use super::shared::Broker;
use super::stream::{answer, hand_over, question};
use super::workspaces::{dial, find};

/// How long a session may take to end that was told why.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves one connection until its end.
pub(super) async fn serve(broker: Arc<Broker>, agent: Arc<Agent>, stream: UnixStream) {
    let peer = match peer(&stream) {
        Ok(peer) => peer,
        Err(error) => return warn!(%error, "cannot tell who connects"),
    };
    let (from, to) = stream.into_split();
    let mut connection = Connection {
        broker,
        agent,
        peer,
        from: BufReader::new(from),
        to,
    };
    if let Err(error) = connection.begin().await {
        warn!(%error, "a connection of sshd's programs failed");
    }
}

struct Connection {
    broker: Arc<Broker>,
    agent: Arc<Agent>,
    /// The process that connected, and its ancestors.
    peer: Vec<Process>,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Connection {
    async fn begin(&mut self) -> io::Result<()> {
        match question(&mut self.from).await? {
            Some(Ask::Listen) => {
                self.listen()?;
                answer(&mut self.to, &Answer::Recorded).await
            }
            Some(Ask::Keys { user, kind, blob }) => {
                let lines = self.keys(&user, &kind, &blob)?;
                answer(&mut self.to, &Answer::Keys(lines)).await
            }
            Some(Ask::Certificate { user, blob }) => {
                let lines = self.principals(&user, &blob)?;
                answer(&mut self.to, &Answer::Keys(lines)).await
            }
            Some(Ask::Login { grant, source }) => self.login(&grant, source).await,
            Some(Ask::Notice) => {
                self.broker.leaving.begun().await;
                answer(&mut self.to, &Answer::Recorded).await
            }
            Some(Ask::Drain) => self.drain().await,
            Some(_) => Err(io::Error::other(
                "a session without a login asked for something",
            )),
            None => Ok(()),
        }
    }

    /// Remembers the process of sshd that listens. While it lives, no other process takes its place.
    fn listen(&self) -> io::Result<()> {
        let process = self.peer.first().copied();
        let process = process.ok_or_else(|| io::Error::other("sshd has ended"))?;
        let mut listener = self
            .broker
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if listener.is_some_and(is_alive) {
            return Err(io::Error::other("another process wants to be sshd"));
        }
        remember(&self.broker.folder, process)?;
        *listener = Some(process);
        Ok(())
    }

    /// Waits until the replica may end. A session has another user id, so it cannot begin the end.
    async fn drain(&mut self) -> io::Result<()> {
        let whole: &UnixStream = self.to.as_ref();
        if whole.peer_cred()?.uid() == rustix::process::geteuid().as_raw() {
            info!("the replica is about to end; its sessions go on");
            self.broker.leaving.begin();
        }
        self.broker.leaving.over().await;
        answer(&mut self.to, &Answer::Recorded).await
    }

    /// The process of sshd's connection that asks for keys.
    fn asks_for_keys(&self) -> Option<Process> {
        connection(&self.peer, self.broker.sshd()?)
    }

    /// The line that lets a key in; empty if it opens no account of this name.
    fn keys(&self, user: &str, kind: &str, blob: &str) -> io::Result<String> {
        let Some(key) = Key::new(kind, blob) else {
            return Ok(String::new());
        };
        let secret = self.granted(user, Credential::Key(key.clone()))?;
        Ok(secret.map_or_else(String::new, |secret| line(&secret, &key)))
    }

    /// The line that lets a certificate in; empty if it opens no account of this name.
    fn principals(&self, user: &str, blob: &str) -> io::Result<String> {
        let shown = match shown(blob, user, Timestamp::now()) {
            Ok(shown) => shown,
            Err(why) => {
                self.broker.metrics.login(&format!("Certificate{why:?}"));
                return Ok(String::new());
            }
        };
        let secret = self.granted(user, Credential::Certificate(shown))?;
        Ok(secret.map_or_else(String::new, |secret| principal(&secret, user)))
    }

    /// The secret of a grant; none if this credential opens no account of this name.
    fn granted(&self, user: &str, by: Credential) -> io::Result<Option<String>> {
        let accounts = Arc::clone(&self.broker.accounts.borrow());
        if accounts.admitted(user, &by).is_none() {
            self.broker.metrics.login("WrongKey");
            return Ok(None);
        }
        let Some(connection) = self.asks_for_keys() else {
            return Ok(None);
        };
        let secret = hex::encode(bytes::<32>()?);
        let grant = Grant {
            user: user.to_owned(),
            by,
            connection,
        };
        let now = self.broker.began.elapsed();
        let mut grants = self.broker.grants();
        let is_issued = grants.issue(secret.clone(), grant, now, is_alive);
        Ok(is_issued.then_some(secret))
    }

    async fn login(&mut self, secret: &str, source: String) -> io::Result<()> {
        let now = self.broker.began.elapsed();
        let grant = self.broker.grants().show(secret, &self.peer, now);
        let accounts = Arc::clone(&self.broker.accounts.borrow());
        let known = grant.and_then(|grant| {
            let person = accounts.admitted(&grant.user, &grant.by)?;
            Some((person.namespace.to_string(), grant))
        });
        let Some((namespace, grant)) = known else {
            let message = "this login is not known";
            let unknown = Problem::new(Code::NotLoggedIn, "NotKnown", message);
            return answer(&mut self.to, &Answer::Refused(unknown)).await;
        };
        let session = hex::encode(bytes::<10>()?);
        let person = Person::new(&self.broker, grant.user.clone(), session.clone(), namespace);
        let place = match self.broker.limits.enter(&grant.user) {
            Ok(place) => place,
            Err(problem) => {
                let reason = problem.reason.clone();
                self.broker.metrics.login(&reason);
                person.record(Event::SessionRefused { reason }).await?;
                return answer(&mut self.to, &Answer::Refused(problem)).await;
            }
        };
        let opened = Event::SessionOpened {
            namespace: person.namespace.clone(),
            source,
            credential: grant.by.to_string(),
        };
        if let Err(error) = person.record(opened).await {
            self.explain(&error).await;
            return Err(error);
        }
        self.broker.metrics.login("opened");
        let _counted = self.broker.metrics.session();
        let broker = Arc::clone(&self.broker);
        let _stays = broker.leaving.session();
        let process = self.peer.first();
        let _known = process.map(|process| self.agent.know(*process, &person));
        let welcome = Answer::Welcome(Welcome {
            user: grant.user.clone(),
            namespace: person.namespace.clone(),
            session,
            enters: self.agent.has_authority(),
        });
        let reason = match answer(&mut self.to, &welcome).await {
            Ok(()) => self.session(&person, &grant, &place).await,
            Err(error) => Err(error),
        };
        let reason = reason.unwrap_or_else(|error| format!("failed: {error}"));
        person.record_at_last(Event::SessionClosed { reason }).await;
        Ok(())
    }

    /// Serves a session until it ends, or until its person may not be here any longer. Returns why it
    /// ended.
    async fn session(
        &mut self,
        person: &Person,
        grant: &Grant,
        place: &Place,
    ) -> io::Result<String> {
        let mut accounts = self.broker.accounts.clone();
        let is_gone =
            |accounts: &Arc<Accounts>| accounts.admitted(&grant.user, &grant.by).is_none();
        let mut is_connected = false;
        let ended = tokio::select! {
            ended = self.answer_all(person, place, &mut is_connected) => ended.map(|()| "ended"),
            gone = accounts.wait_for(is_gone) => {
                gone.map(|_| "revoked").map_err(io::Error::other)
            }
        };
        if let Err(error) = &ended {
            self.explain(error).await;
        }
        if is_connected {
            let unknown = Event::ConnectionClosed {
                up: None,
                down: None,
            };
            person.record_at_last(unknown).await;
        }
        ended.map(str::to_owned)
    }

    /// Tells a session why the broker ends it, in the place of an answer. The session ends by itself
    /// when it has read it.
    async fn explain(&mut self, error: &io::Error) {
        let why = Problem::new(Code::Failed, "Broker", error.to_string());
        if answer(&mut self.to, &Answer::Refused(why)).await.is_ok() {
            // What the session still sends gets no answer. A connection that is closed before all of it is
            // read loses the words (unix(7)).
            let mut nowhere = tokio::io::sink();
            let rest = tokio::io::copy(&mut self.from, &mut nowhere);
            let _ = tokio::time::timeout(LAST_WORDS, rest).await;
        }
    }

    /// Answers the questions of a session until there are no more. `is_connected` says whether the
    /// session has a connection to a workspace.
    async fn answer_all(
        &mut self,
        person: &Person,
        place: &Place,
        is_connected: &mut bool,
    ) -> io::Result<()> {
        while let Some(ask) = question(&mut self.from).await? {
            match ask {
                Ask::Command { words } => {
                    let told = match place.command() {
                        Ok(()) => {
                            person.record(Event::Command { words }).await?;
                            Answer::Recorded
                        }
                        Err(problem) => {
                            let reason = problem.reason.clone();
                            person.record(Event::CommandRefused { reason }).await?;
                            Answer::Refused(problem)
                        }
                    };
                    answer(&mut self.to, &told).await?;
                }
                Ask::Refuse { reason } => {
                    person.record(Event::CommandRefused { reason }).await?;
                    answer(&mut self.to, &Answer::Recorded).await?;
                }
                Ask::Api(call) => {
                    let result = match place.operation() {
                        Ok(()) => person.call(call).await,
                        Err(problem) => Err(too_fast(problem)),
                    };
                    answer(&mut self.to, &Answer::Api(result)).await?;
                }
                Ask::Connect { host } => self.connect(person, &host, is_connected).await?,
                Ask::Closed { up, down } => {
                    let closed = Event::ConnectionClosed {
                        up: Some(up),
                        down: Some(down),
                    };
                    person.record(closed).await?;
                    *is_connected = false;
                    answer(&mut self.to, &Answer::Recorded).await?;
                }
                Ask::Listen
                | Ask::Keys { .. }
                | Ask::Certificate { .. }
                | Ask::Login { .. }
                | Ask::Notice
                | Ask::Drain => {
                    return Err(io::Error::other("a session asked for another login"));
                }
            }
        }
        Ok(())
    }

    /// Connects to a workspace and hands the socket over. `is_connected` is set before the log has the
    /// connection, so the log never has one without an end.
    async fn connect(
        &mut self,
        person: &Person,
        host: &str,
        is_connected: &mut bool,
    ) -> io::Result<()> {
        let dialled = match find(person, host).await {
            Ok((uid, workspace, found)) => {
                let opened = Event::ConnectionOpened {
                    workspace,
                    uid,
                    node: found.node.clone(),
                    address: found.address.to_string(),
                };
                *is_connected = true;
                person.record(opened).await?;
                dial(&found).await
            }
            Err(problem) => Err(problem),
        };
        match dialled {
            Ok(stream) => {
                self.broker.metrics.connection("opened");
                let whole: &UnixStream = self.to.as_ref();
                hand_over(whole, &Answer::Connected, stream.as_fd()).await
            }
            Err(problem) => {
                if std::mem::take(is_connected) {
                    let nothing = Event::ConnectionClosed {
                        up: Some(0),
                        down: Some(0),
                    };
                    person.record(nothing).await?;
                }
                self.broker.metrics.connection(&problem.reason);
                let event = Event::ConnectionRefused {
                    host: host.to_owned(),
                    reason: problem.reason.clone(),
                };
                person.record(event).await?;
                answer(&mut self.to, &Answer::Refused(problem)).await
            }
        }
    }
}

/// The answer of an API server that has too many requests (RFC 6585, section 4).
fn too_fast(problem: Problem) -> Refused {
    Refused {
        status: Some(429),
        reason: problem.reason,
        message: problem.message,
        fields: Vec::new(),
    }
}
