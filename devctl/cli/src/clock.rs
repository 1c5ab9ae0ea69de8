//! The clock of this machine.

use std::time::Duration;

use async_trait::async_trait;
use devctl_core::host::Clock;
use jiff::Timestamp;

/// The clock of this machine.
pub(crate) struct Machine;

#[async_trait]
impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
