//! The broker's side of a connection: the keys of an account, or one session.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use api::workspace::Placement;
use bastion_core::accounts::{Accounts, Key};
use bastion_core::audit::Event;
use bastion_core::grants::{Grant, line};
use bastion_core::hex::hex;
use bastion_core::processes::{Process, connection};
use bastion_core::protocol::{Answer, Ask, is_own};
use bastion_core::target::{self, Target};
use devctl_api_server::ApiServer;
use devctl_core::host::{Api as _, Refused, Scope};
use devctl_core::name::Host;
use devctl_core::object::{Kind, Reference};
use devctl_core::problem::{Code, Problem};
use devctl_core::workspace::Workspace;
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tracing::warn;

use super::api::Person;
use super::limits::Place;
use super::processes::{is_alive, peer, remember};
use super::shared::Broker;
use super::stream::{answer, hand_over, question};

/// How long a connection to a pod may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Serves one connection until its end.
pub(super) async fn serve(broker: Arc<Broker>, stream: UnixStream) {
    let peer = match peer(&stream) {
        Ok(peer) => peer,
        Err(error) => return warn!(%error, "cannot tell who connects"),
    };
    let (from, to) = stream.into_split();
    let mut connection = Connection {
        broker,
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
            Some(Ask::Login { grant, source }) => self.login(&grant, source).await,
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

    /// The process of sshd's connection that asks for keys.
    fn asks_for_keys(&self) -> Option<Process> {
        let listener = self.broker.listener.lock();
        let listener = *listener.unwrap_or_else(PoisonError::into_inner);
        connection(&self.peer, listener?)
    }

    /// The line that lets a key in; empty if it opens no account of this name.
    fn keys(&self, user: &str, kind: &str, blob: &str) -> io::Result<String> {
        let accounts = Arc::clone(&self.broker.accounts.borrow());
        let key = Key::new(kind, blob).filter(|key| accounts.with_key(user, key).is_some());
        let (Some(key), Some(connection)) = (key, self.asks_for_keys()) else {
            return Ok(String::new());
        };
        let secret = random()?;
        let grant = Grant {
            user: user.to_owned(),
            key: key.clone(),
            connection,
        };
        let now = self.broker.began.elapsed();
        let mut grants = self.broker.grants();
        let is_issued = grants.issue(secret.clone(), grant, now, is_alive);
        Ok(if is_issued {
            line(&secret, &key)
        } else {
            String::new()
        })
    }

    async fn login(&mut self, secret: &str, source: String) -> io::Result<()> {
        let now = self.broker.began.elapsed();
        let grant = self.broker.grants().show(secret, &self.peer, now);
        let accounts = Arc::clone(&self.broker.accounts.borrow());
        let known = grant.and_then(|grant| {
            let person = accounts.with_key(&grant.user, &grant.key)?;
            Some((person.namespace.to_string(), grant))
        });
        let Some((namespace, grant)) = known else {
            let message = "this login is not known";
            let unknown = Problem::new(Code::NotLoggedIn, "NotKnown", message);
            return answer(&mut self.to, &Answer::Refused(unknown)).await;
        };
        let id = random()?;
        let session = id.get(..20).unwrap_or(&id).to_owned();
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
            credential: grant.key.to_string(),
        };
        person.record(opened).await?;
        self.broker.metrics.login("opened");
        let _counted = self.broker.metrics.session();
        let welcome = Answer::Welcome {
            user: grant.user.clone(),
            namespace: person.namespace.clone(),
            session,
        };
        let reason = match answer(&mut self.to, &welcome).await {
            Ok(()) => self.session(&person, &grant, &place).await,
            Err(error) => Err(error),
        };
        let reason = reason.unwrap_or_else(|error| format!("failed: {error}"));
        person.record(Event::SessionClosed { reason }).await
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
            |accounts: &Arc<Accounts>| accounts.with_key(&grant.user, &grant.key).is_none();
        let mut is_connected = false;
        let ended = tokio::select! {
            ended = self.answer_all(person, place, &mut is_connected) => ended.map(|()| "ended"),
            gone = accounts.wait_for(is_gone) => {
                gone.map(|_| "revoked").map_err(io::Error::other)
            }
        };
        if is_connected {
            let unknown = Event::ConnectionClosed {
                up: None,
                down: None,
            };
            person.record(unknown).await?;
        }
        ended.map(str::to_owned)
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
                    *is_connected = false;
                    let closed = Event::ConnectionClosed {
                        up: Some(up),
                        down: Some(down),
                    };
                    person.record(closed).await?;
                    answer(&mut self.to, &Answer::Recorded).await?;
                }
                Ask::Listen | Ask::Keys { .. } | Ask::Login { .. } => {
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

/// Finds the machine of a host, if the person may read the claim: the UID of the claim, the host, and the
/// machine.
async fn find(person: &Person, host: &str) -> Result<(String, String, Target), Problem> {
    let host: Result<Host, String> = host.parse();
    let host = host.map_err(|message| Problem::usage("NAME", message))?;
    if !is_own(&host, &person.namespace) {
        let message = format!(
            "you reach workspaces of namespace {} only",
            person.namespace
        );
        return Err(Problem::new(Code::Refused, "OtherNamespace", message).of(host.to_string()));
    }
    let reference = Reference::new(Kind::Claim, &person.namespace, host.workspace.as_str());
    let api = person.api();
    let claim = api.get(&reference).await;
    let claim = claim.map_err(|refused| refused.problem(&reference))?;
    let workspace = Workspace::new(&claim);
    let scope = Scope::Namespace(person.namespace.clone());
    let listed = |kind, api: ApiServer| {
        let scope = &scope;
        async move {
            let all = Reference::new(kind, &person.namespace, "");
            let listed = api.list(kind, scope).await;
            listed.map_err(|refused| refused.problem(&all))
        }
    };
    let found = match workspace.placement() {
        Placement::Cluster => target::pod(workspace, &host, &listed(Kind::Pod, api).await?)?,
        // The person has no right to read pools.
        Placement::Ec2 => {
            let pools = listed(Kind::SpotPool, person.bastion()).await?;
            target::instance(workspace, &host, &pools, person.instance_address())?
        }
    };
    Ok((workspace.uid().to_owned(), host.to_string(), found))
}

async fn dial(target: &Target) -> Result<std::net::TcpStream, Problem> {
    let out_of_reach = |why: String| {
        Problem::new(
            Code::OutOfReach,
            "OutOfReach",
            format!("{}: {why}", target.node),
        )
        .next("try again; if it lasts, ask the platform team whether the bastion may reach workspaces")
    };
    let connected = tokio::time::timeout(CONNECT, TcpStream::connect(target.address)).await;
    let stream = connected
        .map_err(|_| out_of_reach("it does not answer".into()))?
        .map_err(|error| out_of_reach(error.to_string()))?;
    let plain = |stream: TcpStream| {
        stream.set_nodelay(true)?;
        let stream = stream.into_std()?;
        // The session reads and writes with threads.
        stream.set_nonblocking(false)?;
        Ok(stream)
    };
    plain(stream).map_err(|error: io::Error| out_of_reach(error.to_string()))
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

/// 32 random bytes of the kernel in hexadecimal digits.
fn random() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}
