//! A token bucket for the instances in a call. EC2 grants some instances at once, and a number of
//! them each second ("Resource token bucket sizes and refill rates" in the Amazon EC2 Developer
//! Guide).

use tokio::time::{Duration, Instant, sleep};

/// What EC2 grants for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    /// The instances at once after a rest.
    pub(crate) at_once: u32,
    /// The instances in each second.
    pub(crate) each_second: u32,
}

/// The tokens of a grant at a time.
#[derive(Debug)]
pub(crate) struct Bucket {
    grant: Grant,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(grant: Grant) -> Self {
        Self {
            grant,
            tokens: f64::from(grant.at_once),
            at: Instant::now(),
        }
    }

    /// Waits until this many tokens are there, or the bucket is full. Returns how many are there: at
    /// least as many as it was asked for.
    pub(crate) async fn wait_for(&mut self, number: usize) -> usize {
        let wanted = f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let wanted = wanted.min(f64::from(self.grant.at_once));
        self.fill();
        if self.tokens < wanted {
            let missing = (wanted - self.tokens) / f64::from(self.grant.each_second);
            sleep(Duration::from_secs_f64(missing)).await;
            self.fill();
        }
        let whole = Duration::from_secs_f64(self.tokens.max(0.0)).as_secs();
        usize::try_from(whole).map_or(number, |there| there.max(number))
    }

    /// EC2 has fewer tokens than this bucket: another client of the account has taken them.
    pub(crate) fn empty(&mut self) {
        self.fill();
        self.tokens = self.tokens.min(0.0);
    }

    /// Takes tokens for a call. A call that is larger than the bucket leaves a debt.
    pub(crate) fn take(&mut self, number: usize) {
        self.tokens -= f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    }

    fn fill(&mut self) {
        let now = Instant::now();
        let grown = (now - self.at).as_secs_f64() * f64::from(self.grant.each_second);
        self.tokens = (self.tokens + grown).min(f64::from(self.grant.at_once));
        self.at = now;
    }
}
