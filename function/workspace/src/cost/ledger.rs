//! The cost of a workspace's machines, and that of its homes, in this month. Each grows in steps,
//! because each write of status causes another call: between two steps the status stays the same.

use api::internal::Counter;
use api::workspace::GpuDevWorkspaceStatus;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cost::month::Month;
use crate::cost::price::Running;

/// Time between two updates of the cost of machines.
pub const BILLING_INTERVAL: SignedDuration = SignedDuration::from_mins(15);
/// Time between two updates of the cost of homes. Homes cost money while the workspace is stopped,
/// so a shorter time would cause many calls for nothing.
pub const HOME_BILLING_INTERVAL: SignedDuration = SignedDuration::from_hours(24);
/// Amounts with a smaller difference are equal, because amounts are rounded.
pub const USD_TOLERANCE: f64 = 0.001;

/// The cost of machines or homes in one month.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ledger {
    /// The calendar month.
    pub month: Month,
    /// US dollars before `since`.
    pub earlier: f64,
    /// US dollars per hour since `since`; 0 while nothing costs money.
    pub hourly: f64,
    /// Since when the price has been `hourly`.
    pub since: Option<Timestamp>,
    /// Time up to which the cost is counted.
    pub billed_until: Option<Timestamp>,
    /// Time between two updates.
    interval: SignedDuration,
}

impl Ledger {
    /// Reads the ledger of the machines that the last call recorded.
    pub fn of_machines(previous: &GpuDevWorkspaceStatus, now: Timestamp) -> Self {
        let cost = previous.cost.as_ref();
        let shown = cost.map(|cost| (cost.month.as_str(), cost.hourly_usd, cost.so_far_usd));
        let memory = previous.internal.as_ref();
        let counter = memory.and_then(|memory| memory.machines.as_ref());
        Self::recorded(shown, counter, now, BILLING_INTERVAL)
    }

    /// Reads the ledger of the homes that the last call recorded.
    pub fn of_homes(previous: &GpuDevWorkspaceStatus, now: Timestamp) -> Self {
        let cost = previous.cost.as_ref().and_then(|cost| cost.home.as_ref());
        let shown = cost.map(|cost| (cost.month.as_str(), cost.hourly_usd, cost.so_far_usd));
        let memory = previous.internal.as_ref();
        let counter = memory.and_then(|memory| memory.homes.as_ref());
        Self::recorded(shown, counter, now, HOME_BILLING_INTERVAL)
    }

    /// `shown` are the month, the price in US dollars per hour, and the cost so far.
    fn recorded(
        shown: Option<(&str, f64, f64)>,
        counter: Option<&Counter>,
        now: Timestamp,
        interval: SignedDuration,
    ) -> Self {
        let empty = Self::empty(now, interval);
        let Some((month, hourly, so_far)) = shown else {
            return empty;
        };
        let Ok(month) = month.parse() else {
            return empty;
        };
        let time = |of: fn(&Counter) -> &Option<Time>| {
            counter.and_then(|counter| of(counter).as_ref().map(|Time(time)| *time))
        };
        Self {
            month,
            // Without a counter, the cost so far counts, and nothing that runs.
            earlier: counter.map_or(so_far, |counter| counter.earlier_usd),
            hourly,
            since: time(|counter| &counter.since),
            billed_until: time(|counter| &counter.billed_until),
            interval,
        }
    }

    /// The counter to record; none for what has never cost anything.
    pub fn counter(&self) -> Option<Counter> {
        let counter = Counter {
            earlier_usd: self.earlier,
            since: self.since.map(Time),
            billed_until: self.billed_until.map(Time),
        };
        (counter != Counter::default()).then_some(counter)
    }

    fn empty(now: Timestamp, interval: SignedDuration) -> Self {
        Self {
            month: Month::of(now),
            earlier: 0.0,
            hourly: 0.0,
            since: None,
            billed_until: None,
            interval,
        }
    }

    /// The price in US dollars per hour, from what costs money now; none if nothing does. What has
    /// no known price any more costs its last known price.
    pub fn hourly_of(&self, running: Running) -> Option<f64> {
        match running {
            Running::Nothing => None,
            Running::Priced(usd, _) => Some(usd),
            Running::Unpriced => self.since.map(|_| self.hourly),
        }
    }

    /// The ledger at `now`. `hourly` is the current price in US dollars per hour; none if nothing
    /// costs money.
    #[must_use]
    pub fn at(mut self, now: Timestamp, hourly: Option<f64>) -> Self {
        let month = Month::of(now).max(self.month);
        if month > self.month {
            let begun = |time: Timestamp| time.max(month.start());
            self = Self {
                month,
                earlier: 0.0,
                since: self.since.map(begun),
                billed_until: self.billed_until.map(begun),
                ..self
            };
        }
        match (self.since, hourly) {
            (Some(since), Some(hourly)) if (hourly - self.hourly).abs() < f64::EPSILON => {
                let billed = last_tick(since, now, self.interval);
                self.billed_until = Some(self.billed_until.map_or(billed, |at| at.max(billed)));
                self
            }
            (since, hourly) => {
                let spent = since.map_or(0.0, |since| self.hourly * hours(since, now));
                let now = whole_seconds(now);
                Self {
                    month,
                    earlier: rounded((self.earlier + spent).max(self.so_far())),
                    hourly: hourly.unwrap_or_default(),
                    since: hourly.map(|_| now),
                    billed_until: hourly.map(|_| now),
                    interval: self.interval,
                }
            }
        }
    }

    /// US dollars in this month so far.
    pub fn so_far(&self) -> f64 {
        let counted = self.since.zip(self.billed_until);
        let counted = counted.map_or(0.0, |(since, until)| hours(since, until));
        rounded(self.earlier + self.hourly * counted)
    }

    /// When the ledger changes next without a change of what costs money.
    pub fn next(&self) -> Option<Timestamp> {
        let tick = self.billed_until?.saturating_add(self.interval).ok()?;
        Some(tick.min(self.month.end()))
    }
}

/// The last multiple of `interval` after `since` that is not after `now`.
pub fn last_tick(since: Timestamp, now: Timestamp, interval: SignedDuration) -> Timestamp {
    let seconds = now.duration_since(since).as_secs().max(0);
    let counted = seconds - seconds % interval.as_secs();
    let counted = SignedDuration::from_secs(counted);
    since.saturating_add(counted).unwrap_or(since)
}

/// The hours from one time to another; 0 if `until` is before `from`.
pub fn hours(from: Timestamp, until: Timestamp) -> f64 {
    (until.duration_since(from).as_secs_f64() / 3_600.0).max(0.0)
}

/// Rounds to four decimals, the precision of amounts in status.
pub fn rounded(usd: f64) -> f64 {
    (usd * 10_000.0).round() / 10_000.0
}

/// Cuts off fractions of a second: times in Kubernetes have none.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn begun(text: &str, hourly: f64) -> Ledger {
        Ledger::of_machines(&GpuDevWorkspaceStatus::default(), at(text)).at(at(text), Some(hourly))
    }

    #[test]
    fn cost_grows_every_quarter_of_an_hour_and_not_at_every_call() {
        let start = begun("2026-11-20T10:07:03Z", 0.526);
        assert_eq!(start, start.at(at("2026-11-20T10:22:02Z"), Some(0.526)));
        let first = start.at(at("2026-11-20T10:22:03Z"), Some(0.526));
        assert!((first.so_far() - 0.1315).abs() < 1e-9, "{first:?}");
        assert_eq!(first.next(), Some(at("2026-11-20T10:37:03Z")));
        let late = first.at(at("2026-11-20T14:07:03Z"), Some(0.526));
        assert!((late.so_far() - 2.104).abs() < 1e-9, "{late:?}");
    }

    #[test]
    fn a_run_costs_until_the_second_of_its_stop() {
        let start = begun("2026-11-20T10:00:00Z", 3.6);
        let stopped = start.at(at("2026-11-20T10:20:00Z"), None);
        assert!((stopped.so_far() - 1.2).abs() < 1e-9);
        assert_eq!(stopped.next(), None);
        let later = stopped.at(at("2026-11-22T10:00:00Z"), None);
        assert_eq!(later, stopped);
        let again = later.at(at("2026-11-22T11:00:00Z"), Some(3.6));
        let again = again.at(at("2026-11-22T12:00:00Z"), Some(3.6));
        assert!((again.so_far() - 4.8).abs() < 1e-9, "{again:?}");
    }

    #[test]
    fn a_replacement_costs_its_own_price_from_its_first_observation() {
        let start = begun("2026-11-20T10:00:00Z", 1.0);
        let other = start.at(at("2026-11-20T10:30:00Z"), Some(4.0));
        let other = other.at(at("2026-11-20T11:30:00Z"), Some(4.0));
        assert!((other.so_far() - 4.5).abs() < 1e-9, "{other:?}");
    }

    #[test]
    fn a_new_month_starts_at_zero_while_the_machine_runs() {
        let start = begun("2026-11-30T23:50:00Z", 1.0);
        assert_eq!(start.next(), Some(at("2026-12-01T00:00:00Z")));
        let next = start.at(at("2026-12-01T00:16:00Z"), Some(1.0));
        assert_eq!(next.month.to_string(), "2026-12");
        assert!((next.so_far() - 0.25).abs() < 1e-9, "{next:?}");
        let behind = next.at(at("2026-11-30T23:59:59Z"), Some(1.0));
        assert_eq!(behind, next, "a clock that is behind takes nothing back");
    }

    #[test]
    fn homes_grow_once_a_day_while_the_workspace_is_stopped() {
        let start = Ledger::of_homes(
            &GpuDevWorkspaceStatus::default(),
            at("2026-11-20T10:00:00Z"),
        );
        let start = start.at(at("2026-11-20T10:00:00Z"), Some(0.25));
        assert_eq!(start.next(), Some(at("2026-11-21T10:00:00Z")));
        assert_eq!(start, start.at(at("2026-11-21T09:59:59Z"), Some(0.25)));
        let day = start.at(at("2026-11-21T10:00:00Z"), Some(0.25));
        assert!((day.so_far() - 6.0).abs() < 1e-9, "{day:?}");
        let larger = day.at(at("2026-11-21T12:00:00Z"), Some(0.5));
        assert!((larger.so_far() - 6.5).abs() < 1e-9, "{larger:?}");
        assert_eq!(larger.hourly_of(Running::Unpriced), Some(0.5));
        let gone = larger.at(at("2026-11-21T14:00:00Z"), None);
        assert!((gone.so_far() - 7.5).abs() < 1e-9, "{gone:?}");
        assert_eq!(gone.next(), None);
    }

    #[test]
    fn rounding_does_not_add_up_over_a_month() {
        let mut ledger = begun("2026-11-01T00:00:00Z", 0.1234);
        let mut now = at("2026-11-01T00:00:00Z");
        for _ in 0..29 * 96 {
            now += BILLING_INTERVAL;
            ledger = ledger.at(now, Some(0.1234));
        }
        assert!((ledger.so_far() - 0.1234 * 29.0 * 24.0).abs() < 0.0001);
    }
}
