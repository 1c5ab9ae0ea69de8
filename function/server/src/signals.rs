//! The signals that end the server.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// SIGTERM, as Kubernetes sends it, and SIGINT, as a terminal does.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on the signals no longer end the process.
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] when the system refuses.
    pub fn install() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Signals);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one and names it.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
