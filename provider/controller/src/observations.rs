//! The age of each region's last observation, as a gauge.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use crate::context::Context;

/// The gauge of all regions in use.
pub struct Observations(Arc<Context>);

impl Observations {
    /// Reads the regions of a context at every scrape.
    pub fn of(context: Arc<Context>) -> Self {
        Self(context)
    }
}

impl fmt::Debug for Observations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observations").finish_non_exhaustive()
    }
}

impl Collector for Observations {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let ages = self.0.regions.ages(Timestamp::now());
        if ages.is_empty() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(
            "gpu_spot_observation_age_seconds",
            "The age of the oldest last observation of EC2, by region",
            None,
            MetricType::Gauge,
        )?;
        for (region, age) in ages {
            let labels = [("region", region.as_str())];
            metric
                .encode_family(&labels)?
                .encode_gauge(&age.as_secs_f64())?;
        }
        Ok(())
    }
}
