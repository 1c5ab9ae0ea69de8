//! Percentiles and medians.

use std::time::Duration;

/// A percentile of the durations, by nearest rank. This sorts the durations.
pub(crate) fn percentile(durations: &mut [Duration], percent: usize) -> Duration {
    durations.sort_unstable();
    let rank = (durations.len() * percent).div_ceil(100);
    durations
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// The median. For an even number of figures, this is the mean of the middle two. For no figures,
/// it is NaN.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.as_slice() {
        [] => f64::NAN,
        sorted if sorted.len() % 2 == 1 => sorted[middle],
        sorted => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_call_in_a_hundred_does_not_show_in_p99() {
        let mut calls: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        calls.reverse();
        assert_eq!(percentile(&mut calls, 50), Duration::from_millis(50));
        assert_eq!(percentile(&mut calls, 99), Duration::from_millis(99));
        assert_eq!(percentile(&mut calls[..1], 99), Duration::from_millis(1));
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "these figures are exact")]
    fn one_disturbed_round_does_not_move_the_median() {
        assert_eq!(median([1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median([1.0, 2.0, 3.0, 900.0]), 2.5);
        assert!(median([]).is_nan());
    }
}
