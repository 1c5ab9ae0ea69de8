//! Sends reports to an annotation of a Lease, with the service account of the agent's pod.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use activity_report::{REPORT_ANNOTATION, Report};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::{self, Trust};
use crate::log::Problem;

/// The folder with the service account in a pod.
pub const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TIMEOUT: Duration = Duration::from_secs(20);

/// A Lease, and how to reach it.
pub struct Lease {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The address of the API server.
    pub server: String,
    /// The folder with `token` and `ca.crt`.
    pub service_account: PathBuf,
}

impl Lease {
    /// Renews the Lease and writes the report into its annotation.
    pub fn send(&self, report: &Report, now: Timestamp) -> Result<(), Problem> {
        let url = format!(
            "{}/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
            self.server.trim_end_matches('/'),
            self.namespace,
            self.name
        );
        // Kubernetes changes token and certificate while the pod runs, so they are read each time.
        let token = read(&self.service_account.join("token"))?;
        let authority = self.service_account.join("ca.crt");
        let client = http::client(&Trust::File(&authority), TIMEOUT, None)
            .map_err(|error| Problem::new("authority", error.to_string()))?;
        let request = client
            .patch(&url)
            .header("Authorization", format!("Bearer {}", token.trim()))
            .header("Content-Type", "application/merge-patch+json");
        let sent = request.send(patch(report, now).to_string());
        let (status, text) = http::answer(&url, sent)?;
        if status == 200 {
            return Ok(());
        }
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = answer["message"].as_str().unwrap_or_default();
        let text = format!("PATCH {url}: HTTP {status}: {message}");
        Err(Problem::new(status.to_string(), text))
    }
}

/// The body of a JSON merge patch (RFC 7386).
fn patch(report: &Report, now: Timestamp) -> Value {
    // Kubernetes' `MicroTime` always has microseconds.
    json!({
        "metadata": {"annotations": {REPORT_ANNOTATION: report.to_string()}},
        "spec": {"renewTime": format!("{now:.6}")},
    })
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path)
        .map_err(|error| Problem::new("token", format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_the_report_and_the_time_and_nothing_else() {
        let text = "v1 at=2026-11-22T10:00:00Z ssh=none job=none gpu=absent kernel=unknown";
        let now = "2026-11-22T10:00:01.5Z".parse().unwrap();
        let expected = json!({
            "metadata": {"annotations": {"gpu.platform.acme.io/activity": text}},
            "spec": {"renewTime": "2026-11-22T10:00:01.500000Z"},
        });
        assert_eq!(patch(&text.parse().unwrap(), now), expected);
    }
}
