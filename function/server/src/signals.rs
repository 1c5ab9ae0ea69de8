//! The signals that stop the server.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// SIGTERM, which Kubernetes sends, and SIGINT, which a terminal sends.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs handlers, so that the signals no longer end the process.
    ///
    /// # Errors
    ///
    /// [`Error::Signals`] if the system refuses.
    pub fn install() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Signals);
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
