//! The measured figures and their table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::account::{BOOT, Count};
use crate::naive::Naive;
use crate::phases::Phase;
use crate::process::MIB;

/// The operation that reads a console.
pub(crate) const CONSOLE: &str = "GetConsoleOutput";

/// Everything that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) pools: usize,
    pub(crate) instances: usize,
    /// The time from a pool's creation until it has its capacity, p50 and p99, in seconds.
    pub(crate) to_capacity: [f64; 2],
    pub(crate) fill: Phase,
    /// The instances whose console is read.
    pub(crate) console_instances: usize,
    /// Console calls before the provider rests.
    pub(crate) console_calls: u64,
    pub(crate) rest: Phase,
    /// The time from an interruption to the request for the replacement, p50 and p99, in seconds.
    pub(crate) replaced: [f64; 2],
    pub(crate) interruptions: usize,
    /// The instances whose pool's time ended.
    pub(crate) ends: usize,
    /// The time from `endsAt` to the end of the instance, p50 and p99, in seconds.
    pub(crate) late: [f64; 2],
    /// The longest of these times.
    pub(crate) latest: f64,
    pub(crate) naive: Naive,
}

impl Figures {
    /// AWS calls at rest per reconcile, without those of the shared look (`Ledger::shared`).
    pub(crate) fn calls_per_reconcile(&self) -> f64 {
        let own = self.rest.calls.total().all - self.rest.calls.shared;
        number(own) / self.rest.requests.reconciles
    }

    pub(crate) fn writes_per_reconcile(&self) -> f64 {
        self.rest.requests.status_writes / self.rest.requests.reconciles
    }

    /// Calls per second at rest, as a share of the naive provider's.
    pub(crate) fn ratio(&self) -> f64 {
        let naive = rate(self.naive.resting, Naive::window());
        rate(self.rest.calls.total(), self.rest.took) / naive
    }

    /// Console calls before the provider rests, by instance whose console is read. Every console says
    /// at once that the setup has ended.
    pub(crate) fn consoles_per_instance(&self) -> f64 {
        let instances = u64::try_from(self.console_instances).unwrap_or(u64::MAX);
        number(self.console_calls) / number(instances)
    }

    /// Console calls at rest, when every setup has ended.
    pub(crate) fn consoles_at_rest(&self) -> f64 {
        number(self.rest.calls.of(CONSOLE))
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |what: &str, own: String, naive: String| {
            // Writing to a String never fails.
            let _ = writeln!(text, "{what:<46}{own:>10}{naive:>18}");
        };
        let nothing = String::new;
        let naive = &self.naive;
        let [p50, p99] = self.to_capacity;
        let boot = BOOT.as_secs_f64();
        let (filling, resting) = (self.fill.calls.total(), self.rest.calls.total());
        row("", "this".into(), "naive".into());
        let title = format!(
            "{} pools, {} instances: filled, s",
            self.pools, self.instances
        );
        let filled = self.fill.took.as_secs_f64();
        row(&title, format!("{filled:.0}"), seconds(naive.filled + BOOT));
        row(
            "creation to capacity, p50, s",
            format!("{p50:.1}"),
            nothing(),
        );
        row(
            "creation to capacity, p99, s",
            format!("{p99:.1}"),
            nothing(),
        );
        row(
            "  of which an instance boots, s",
            format!("{boot:.0}"),
            nothing(),
        );
        row(
            "filling: AWS calls/s",
            format!("{:.1}", rate(filling, self.fill.took)),
            format!("{:.1}", rate(naive.filling, naive.filled)),
        );
        row(
            "filling: AWS calls",
            filling.all.to_string(),
            naive.filling.all.to_string(),
        );
        row("  of which throttled", share(filling), share(naive.filling));
        for (operation, count) in &self.fill.calls.calls {
            let calls = format!("{:.2}", rate(*count, self.fill.took));
            let throttled = match count.throttled {
                0 => nothing(),
                throttled => format!("{throttled} throttled"),
            };
            row(&format!("    {operation}/s"), calls, throttled);
        }
        row(
            "at rest: AWS calls/s",
            format!("{:.2}", rate(resting, self.rest.took)),
            format!("{:.2}", rate(naive.resting, Naive::window())),
        );
        row("  of which throttled", share(resting), share(naive.resting));
        for (operation, count) in &self.rest.calls.calls {
            let calls = format!("{:.2}", rate(*count, self.rest.took));
            row(&format!("    {operation}/s"), calls, nothing());
        }
        let requests = &self.rest.requests;
        row(
            "at rest: reconciles",
            format!("{:.0}", requests.reconciles),
            nothing(),
        );
        let own = self.calls_per_reconcile();
        row(
            "  AWS calls each, beside the shared look",
            format!("{own:.3}"),
            "1".into(),
        );
        let writes = self.writes_per_reconcile();
        row("  status writes each", format!("{writes:.3}"), nothing());
        let asked = requests.all / requests.reconciles;
        row(
            "  requests to the API server each",
            format!("{asked:.2}"),
            nothing(),
        );
        row(
            "at rest: resident, MiB",
            format!("{:.1}", self.rest.resident / MIB),
            nothing(),
        );
        row(
            "  while filling, MiB",
            format!("{:.1}", self.fill.resident / MIB),
            nothing(),
        );
        row(
            "at rest: processors",
            format!("{:.3}", self.rest.processors),
            nothing(),
        );
        for (what, own) in self.delays() {
            row(&what, own, nothing());
        }
        text
    }

    /// The rows about how late something happened.
    fn delays(&self) -> [(String, String); 5] {
        let [replaced, replaced_p99] = self.replaced.map(|s| format!("{:.0}", s * 1e3));
        let [late, late_p99] = self.late.map(|s| format!("{s:.1}"));
        [
            (
                format!("{} interruptions to request, p50, ms", self.interruptions),
                replaced,
            ),
            ("  p99, ms".into(), replaced_p99),
            (
                format!("{} ends in a minute: late, p50, s", self.ends),
                late,
            ),
            ("  p99, s".into(), late_p99),
            ("  the latest, s".into(), format!("{:.1}", self.latest)),
        ]
    }
}

/// The 50th and the 99th percentile by nearest rank, in seconds. Both are NaN for an empty list.
pub(crate) fn percentiles(mut durations: Vec<Duration>) -> [f64; 2] {
    durations.sort_unstable();
    [50, 99].map(|percent| {
        let rank = (durations.len() * percent).div_ceil(100);
        let found = durations.get(rank.saturating_sub(1));
        found.map_or(f64::NAN, Duration::as_secs_f64)
    })
}

fn rate(count: Count, duration: Duration) -> f64 {
    number(count.all) / duration.as_secs_f64()
}

fn share(count: Count) -> String {
    if count.all == 0 {
        return "0".into();
    }
    let percent = 100.0 * number(count.throttled) / number(count.all);
    format!("{percent:.1} %")
}

fn seconds(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64())
}

#[allow(clippy::cast_precision_loss, reason = "far fewer calls than 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_sixty_is_the_99th_percentile() {
        let all: Vec<Duration> = (1..=60).rev().map(Duration::from_secs).collect();
        assert_eq!(
            percentiles(all).map(f64::to_bits),
            [30.0, 60.0].map(f64::to_bits)
        );
        assert!(percentiles(Vec::new())[0].is_nan());
    }
}
