//! Exponential back-off with jitter.

use jiff::SignedDuration;

use crate::token::digest;

/// The longest time between two tries, before the jitter.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// The time before the next try after this many failures in a row. It doubles with each failure, up
/// to five minutes. It differs by up to a fifth from caller to caller: without that, a thousand
/// pools that EC2 refused in the same second ask again in the same second. `who` is the caller's
/// unique name. Equal arguments give equal times.
pub fn back_off(first: SignedDuration, failures: u32, who: &str) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(16);
    let time = first.saturating_mul(1 << doublings).min(LONGEST);
    let dice = digest([who, &failures.to_string()]);
    let dice = dice
        .get(..4)
        .and_then(|hex| i64::from_str_radix(hex, 16).ok());
    let thousandths = 800 + dice.unwrap_or_default() * 400 / 0xffff;
    let thousandths = i32::try_from(thousandths).unwrap_or(1000);
    time.saturating_mul(thousandths) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: SignedDuration = SignedDuration::from_secs(5);

    #[test]
    fn the_time_doubles_up_to_five_minutes() {
        for (failures, seconds) in [(1, 5), (2, 10), (3, 20), (7, 300), (99, 300)] {
            let time = back_off(FIRST, failures, "a").as_secs_f64();
            let most = f64::from(seconds);
            assert!(
                (0.8 * most..=1.2 * most).contains(&time),
                "{failures}: {time}"
            );
        }
    }

    #[test]
    fn callers_that_failed_together_do_not_try_again_together() {
        let times = (0..1000).map(|n| back_off(FIRST, 9, &format!("pool-{n}")).as_secs());
        let mut of_second = std::collections::BTreeMap::<i64, u32>::new();
        for time in times {
            *of_second.entry(time).or_default() += 1;
        }
        let most = of_second.values().max().unwrap();
        assert!(*most < 30, "{most} in one second");
    }
}
