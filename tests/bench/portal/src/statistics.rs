//! Percentiles of durations.

use std::time::Duration;

use serde_json::{Value, json};

/// A percentile by nearest rank, in milliseconds; none without durations. The durations must be sorted.
fn percentile(sorted: &[Duration], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map(|one| one.as_secs_f64() * 1e3)
}

/// How many durations there are, and their percentiles in milliseconds.
pub(crate) fn summary(mut durations: Vec<Duration>) -> Value {
    durations.sort_unstable();
    json!({
        "count": durations.len(),
        "p50Ms": percentile(&durations, 50),
        "p95Ms": percentile(&durations, 95),
        "p99Ms": percentile(&durations, 99),
        "maximumMs": percentile(&durations, 100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_in_a_hundred_does_not_show_in_p99() {
        let hundred: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let found = summary(hundred);
        assert_eq!(
            found,
            json!({"count": 100, "p50Ms": 50.0, "p95Ms": 95.0, "p99Ms": 99.0, "maximumMs": 100.0})
        );
        assert_eq!(summary(vec![Duration::from_millis(7)])["p99Ms"], 7.0);
        assert_eq!(summary(Vec::new())["p99Ms"], Value::Null);
    }
}
