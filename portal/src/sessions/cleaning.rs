//! Deletes the Secrets of sessions that are over: after their longest time, or without use. All replicas see the
//! deletion.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta};
use tracing::{debug, warn};

use super::known::{USED, time};
use super::{EXPIRES, LABEL, Sessions};

/// How often.
const CLEANING: Duration = Duration::from_mins(10);
/// Not oftener than this.
const SECOND: Duration = Duration::from_secs(1);

impl Sessions {
    /// Deletes what is over, until the process ends.
    pub(super) async fn clean(self) {
        let mut due =
            tokio::time::interval(self.limits.idle().unsigned_abs().clamp(SECOND, CLEANING));
        loop {
            due.tick().await;
            let parameters = ListParams::default().labels(LABEL);
            let secrets = match self.secrets.list_metadata(&parameters).await {
                Ok(secrets) => secrets,
                Err(error) => {
                    warn!(%error, "cannot list the sessions that are over");
                    continue;
                }
            };
            for secret in secrets {
                if self.is_over(&secret, Timestamp::now()) {
                    let name = secret.name_any();
                    let deleted = self.secrets.delete(&name, &DeleteParams::default()).await;
                    if let Err(error) = deleted {
                        // Another replica may have been faster.
                        debug!(%error, name, "cannot delete a session that is over");
                    }
                }
            }
        }
    }

    fn is_over(&self, secret: &PartialObjectMeta<Secret>, now: Timestamp) -> bool {
        let is_unused = |used| now.duration_since(used) > self.limits.unused();
        time(secret, EXPIRES).is_none_or(|expires| expires < now)
            || time(secret, USED).is_some_and(is_unused)
    }
}
