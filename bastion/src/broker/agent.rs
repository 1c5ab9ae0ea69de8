//! The agent of the ssh that sessions start: it logs in to workspaces for the person of the session.
//!
//! A key lives in the memory of the broker for one connection of ssh, with a certificate of two minutes for
//! the person. The kernel tells the broker which session's ssh asks, as it does for sessions.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bastion_core::agent::{LONGEST, Request, failure, identity, request, signed};
use bastion_core::audit::Event;
use bastion_core::certificates::{Identity, LIFE_SECONDS};
use bastion_core::processes::Process;
use jiff::Timestamp;
use ssh_key::PrivateKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tracing::info;

use super::accepting::serve_each;
use super::api::Person;
use super::processes::peer;
use super::random::bytes;

/// The sessions that are open, and the authority that workspaces trust.
pub(super) struct Agent {
    authority: Option<PrivateKey>,
    /// The person of each session, by the process of the session.
    sessions: Mutex<HashMap<Process, Person>>,
}

/// A session of the agent. It ends when it is dropped.
pub(super) struct Known {
    agent: Arc<Agent>,
    process: Process,
}

impl Agent {
    /// An agent with the authority's private key in OpenSSH's format; without one, it signs nothing.
    pub(super) fn new(authority: Option<&str>) -> Result<Self, ssh_key::Error> {
        let authority = authority.map(PrivateKey::from_openssh).transpose()?;
        if let Some(authority) = &authority {
            let public = authority.public_key().to_openssh()?;
            info!(
                public,
                "workspaces let people in whose policy has this authority"
            );
        }
        Ok(Self {
            authority,
            sessions: Mutex::default(),
        })
    }

    /// Whether it can log in to workspaces.
    pub(super) fn has_authority(&self) -> bool {
        self.authority.is_some()
    }

    /// Knows a session by its process.
    pub(super) fn know(self: &Arc<Self>, process: Process, person: &Person) -> Known {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(process, person.clone());
        Known {
            agent: Arc::clone(self),
            process,
        }
    }

    /// The person whose session started a process. `chain` has the process and its ancestors.
    fn person(&self, chain: &[Process]) -> Option<Person> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ancestors = chain.iter().skip(1);
        ancestors.find_map(|process| sessions.get(process).cloned())
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let sessions = self.agent.sessions.lock();
        let mut sessions = sessions.unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&self.process);
    }
}

/// Serves connections of ssh until the broker ends.
pub(super) async fn serve(agent: Arc<Agent>, listener: UnixListener) {
    serve_each(listener, "agent", |stream| {
        answer(Arc::clone(&agent), stream)
    })
    .await;
}

/// Answers one ssh until it ends.
async fn answer(agent: Arc<Agent>, mut stream: UnixStream) -> io::Result<()> {
    let chain = peer(&stream)?;
    let mut issued = None;
    while let Some(message) = message(&mut stream).await? {
        // A session that ended meanwhile signs nothing more.
        let person = agent.person(&chain);
        let answer = match (request(&message), person) {
            (Request::Identities, Some(person)) => {
                let made = issue(&agent, &person).await?;
                let shown = made
                    .as_ref()
                    .map_or_else(failure, |(made, id)| identity(&made.certificate, id));
                issued = made.map(|(made, _)| made);
                shown
            }
            (Request::Sign { key, data }, Some(_)) => match &issued {
                Some(issued) if issued.certificate == key => {
                    signed(&issued.sign(data).map_err(io::Error::other)?)
                }
                _ => failure(),
            },
            _ => failure(),
        };
        stream.write_all(&answer).await?;
    }
    Ok(())
}

/// Makes a certificate for the person of a session, and its name. The log has it before ssh does.
async fn issue(agent: &Agent, person: &Person) -> io::Result<Option<(Identity, String)>> {
    let Some(authority) = &agent.authority else {
        return Ok(None);
    };
    let (user, session) = (person.user(), person.session());
    let id = format!("{user} by {}, session {session}", person.replica());
    let (seed, nonce) = (bytes()?, bytes()?);
    let made = Identity::issue(authority, user, &id, &seed, &nonce, Timestamp::now());
    let made = made.map_err(io::Error::other)?;
    let event = Event::CertificateIssued {
        id: id.clone(),
        seconds: LIFE_SECONDS,
    };
    person.record(event).await?;
    Ok(Some((made, id)))
}

/// Reads a message without its length; none at the end.
pub(super) async fn message(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let length = match stream.read_u32().await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut message = Vec::new();
    stream
        .take(u64::from(length))
        .read_to_end(&mut message)
        .await?;
    Ok(Some(message))
}
