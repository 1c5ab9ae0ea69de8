//! The bastion's host key, which sshd and sessions never see.
//!
//! sshd runs without privileges, so a session could read what sshd reads. sshd has the public key only, and
//! asks this agent to sign (`sshd_config(5)`, `HostKeyAgent`). The kernel tells the broker that it is sshd's
//! process of a connection that asks, and no session.

use std::io;
use std::sync::Arc;

use bastion_core::agent::{Request, failure, request, signed};
use bastion_core::certificates::sign;
use bastion_core::processes::{Process, is_connection};
use ssh_key::PrivateKey;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use super::accepting::serve_each;
use super::agent::message;
use super::processes::peer;
use super::shared::Broker;

/// The host key.
pub(super) struct HostKey {
    private: PrivateKey,
    /// The public key, as the agent's protocol has it.
    public: Vec<u8>,
}

impl HostKey {
    /// Reads a private key in OpenSSH's format.
    pub(super) fn new(private: &str) -> Result<Self, ssh_key::Error> {
        let private = PrivateKey::from_openssh(private)?;
        let public = private.public_key().to_bytes()?;
        Ok(Self { private, public })
    }

    /// The public key in OpenSSH's format.
    pub(super) fn public(&self) -> Result<String, ssh_key::Error> {
        self.private.public_key().to_openssh()
    }

    /// Answers a message of a process, whose ancestors follow it in `chain`.
    fn answer(&self, message: &[u8], chain: &[Process], listener: Option<Process>) -> Vec<u8> {
        let asks = listener.is_some_and(|listener| is_connection(chain, listener));
        let signature = match request(message) {
            Request::Sign { key, data } if asks && key == self.public => sign(&self.private, data),
            _ => return failure(),
        };
        signature.map_or_else(|_| failure(), |signature| signed(&signature))
    }
}

/// Serves sshd until the broker ends.
pub(super) async fn serve(broker: Arc<Broker>, key: HostKey, listener: UnixListener) {
    let key = Arc::new(key);
    serve_each(listener, "host key", |stream| {
        answer_all(Arc::clone(&broker), Arc::clone(&key), stream)
    })
    .await;
}

async fn answer_all(
    broker: Arc<Broker>,
    key: Arc<HostKey>,
    mut stream: UnixStream,
) -> io::Result<()> {
    let chain = peer(&stream)?;
    while let Some(message) = message(&mut stream).await? {
        let answer = key.answer(&message, &chain, broker.sshd());
        stream.write_all(&answer).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bastion_core::agent::sign_request;
    use ssh_key::private::Ed25519Keypair;

    use super::*;

    #[test]
    fn only_sshd_itself_signs_with_the_host_key() {
        let private = PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]));
        let text = private.to_openssh(ssh_key::LineEnding::LF).unwrap();
        let key = HostKey::new(&text).unwrap();
        let asked = |public: &[u8], chain: &[i32]| {
            let message = sign_request(public, b"exchange");
            let process = |id: &i32| Process {
                id: *id,
                started: 7,
            };
            let chain: Vec<_> = chain.iter().map(process).collect();
            key.answer(&message[4..], &chain, Some(process(&10)))
        };
        // 10 listens, 20 is a connection, and 23 its session.
        assert_ne!(asked(&key.public, &[20, 10, 1]), failure());
        assert_eq!(asked(&key.public, &[23, 22, 20, 10, 1]), failure());
        assert_eq!(asked(&key.public, &[22, 20, 10, 1]), failure());
        assert_eq!(asked(&key.public, &[30, 1]), failure());
        assert_eq!(asked(b"another", &[20, 10, 1]), failure());
    }
}
