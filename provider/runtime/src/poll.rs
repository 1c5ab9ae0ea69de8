//! How often a controller polls a resource for which no event arrives.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation that overrides the provider's interval for one resource. Its value is a duration
/// in Go's notation, for example `1h30m`.
pub const ANNOTATION: &str = "crossplane.io/poll-interval";

/// The fraction by which an interval is spread, so that the resources that a provider found at its
/// start are not polled at the same moment for ever.
const JITTER: f64 = 0.1;

/// The provider's poll intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The interval of resources without the annotation.
    pub default: Duration,
    /// The shortest interval that a resource may ask for.
    pub minimum: Duration,
}

impl Intervals {
    /// The poll interval of a resource. As in crossplane-runtime, an annotation that is not a
    /// positive duration is ignored.
    pub fn of(&self, meta: &ObjectMeta) -> Duration {
        let annotations = meta.annotations.as_ref();
        let asked = annotations
            .and_then(|a| a.get(ANNOTATION))
            .and_then(|text| text.parse::<kube::core::Duration>().ok())
            .filter(|duration| !duration.is_negative())
            .map(Duration::from)
            .filter(|duration| !duration.is_zero());
        asked.map_or(self.default, |asked| asked.max(self.minimum))
    }
}

/// The interval, longer or shorter by up to a tenth. `random` is at least 0 and less than 1.
pub fn jittered(interval: Duration, random: f64) -> Duration {
    interval.mul_f64(1.0 - JITTER + 2.0 * JITTER * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(annotation: Option<&str>) -> Duration {
        let meta = ObjectMeta {
            annotations: annotation.map(|text| [(ANNOTATION.into(), text.into())].into()),
            ..ObjectMeta::default()
        };
        let intervals = Intervals {
            default: Duration::from_mins(1),
            minimum: Duration::from_secs(10),
        };
        intervals.of(&meta)
    }

    #[test]
    fn a_resource_may_be_polled_more_seldom_or_more_often_than_the_rest() {
        assert_eq!(interval(None), Duration::from_mins(1));
        assert_eq!(interval(Some("1h30m")), Duration::from_mins(90));
        assert_eq!(interval(Some("20s")), Duration::from_secs(20));
    }

    #[test]
    fn the_poll_interval_has_a_minimum() {
        assert_eq!(interval(Some("1ms")), Duration::from_secs(10));
        for none in ["", "0s", "-1m", "soon", "10"] {
            assert_eq!(interval(Some(none)), Duration::from_mins(1), "{none:?}");
        }
    }

    #[test]
    fn resources_found_together_are_not_polled_together() {
        let minute = Duration::from_mins(1);
        assert_eq!(jittered(minute, 0.0), Duration::from_secs(54));
        assert_eq!(jittered(minute, 0.5), minute);
        assert_eq!(jittered(minute, 1.0), Duration::from_secs(66));
    }
}
