//! The activity of a workspace in the cluster. Each pod has a Lease, and the agent beside the
//! owner's container writes its reports into it.

use std::collections::BTreeMap;

use activity_report::{REPORT_ANNOTATION, Report, Sign};
use function_workspace::lifecycle::activity::Reported;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use crate::identity;
use crate::names::Names;
use crate::resource_names;
use crate::seen::{Seen, text};

/// The Leases of the pods, by composition resource name. Their contents belong to the agents.
pub fn leases(names: &Names, owner: &str, pods: i32) -> BTreeMap<String, Lease> {
    let lease = |ordinal| {
        let lease = Lease {
            metadata: identity::metadata(names, &names.activity(ordinal), owner),
            spec: None,
        };
        (resource_names::pod_activity(ordinal), lease)
    };
    (0..pods).map(lease).collect()
}

/// The reports of all pods, combined into one. The workspace is in use if one pod is in use.
/// Otherwise its use is unknown if that of one pod is unknown. Returns none if a pod has not
/// reported. A report that cannot be read is returned unchanged.
pub fn reported(seen: Seen<'_>, pods: i32) -> Option<String> {
    let reports: Option<Vec<&str>> = (0..pods)
        .map(|ordinal| {
            let lease = seen.observed.get(&resource_names::pod_activity(ordinal))?;
            text(lease, &["metadata", "annotations", REPORT_ANNOTATION])
        })
        .collect();
    let reports = reports?;
    if let [only] = reports.as_slice() {
        return Some((*only).to_owned());
    }
    let read: Result<Vec<Report>, _> = reports.iter().map(|text| text.parse()).collect();
    match read {
        Ok(read) => together(&read).map(|report| report.to_string()),
        // The caller reports why this text cannot be read.
        Err(_) => reports
            .into_iter()
            .find(|text| text.parse::<Report>().is_err())
            .map(str::to_owned),
    }
}

/// The combined report, or why there is none.
pub fn as_reported(has_agent: bool, text: Option<&str>) -> Reported<'_> {
    match text {
        _ if !has_agent => Reported::NoAgent("input.cluster.agent"),
        None => Reported::Nothing,
        Some(text) => Reported::Text(text),
    }
}

fn together(reports: &[Report]) -> Option<Report> {
    let at = reports.iter().map(|report| report.at).min()?;
    let of = |sign: fn(&Report) -> Sign| {
        let signs = reports.iter().map(|report| (sign(report), report.at));
        signs.fold(Sign::Absent, |all, (sign, made)| {
            worse(all, relative(sign, made, at), at)
        })
    };
    Some(Report {
        at,
        ssh: of(|report| report.ssh),
        job: of(|report| report.job),
        gpu: of(|report| report.gpu),
        kernel: of(|report| report.kernel),
    })
}

/// Converts a sign of a report made at `made` into one of a report made at `at`. A source that is
/// in use stays in use.
fn relative(sign: Sign, made: Timestamp, at: Timestamp) -> Sign {
    match sign {
        Sign::At(time) if time == made => Sign::At(at),
        Sign::At(time) => Sign::At(time.min(at)),
        other => other,
    }
}

fn worse(one: Sign, other: Sign, at: Timestamp) -> Sign {
    match (one, other) {
        (Sign::At(time), _) | (_, Sign::At(time)) if time == at => Sign::At(at),
        (Sign::Unknown, _) | (_, Sign::Unknown) => Sign::Unknown,
        (Sign::At(one), Sign::At(other)) => Sign::At(one.max(other)),
        (Sign::At(time), _) | (_, Sign::At(time)) => Sign::At(time),
        (Sign::Never, _) | (_, Sign::Never) => Sign::Never,
        (Sign::Absent, Sign::Absent) => Sign::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(at: &str, ssh: &str, job: &str) -> Report {
        let day = "2026-11-20T";
        let sign = |sign: &str| {
            if sign.contains(':') {
                format!("{day}{sign}:00Z")
            } else {
                sign.to_owned()
            }
        };
        let text = format!(
            "v1 at={day}{at}:00Z ssh={} job={} gpu=absent kernel=absent",
            sign(ssh),
            sign(job)
        );
        text.parse().unwrap()
    }

    #[test]
    fn a_session_at_any_pod_keeps_all_of_them() {
        let busy = report("10:05", "10:05", "none");
        let idle = report("10:00", "09:00", "none");
        let all = together(&[idle, busy]).unwrap();
        assert_eq!(all, report("10:00", "10:00", "none"));
    }

    #[test]
    fn a_pod_with_unknown_use_keeps_all_pods() {
        let all = together(&[
            report("10:00", "09:00", "absent"),
            report("10:00", "unknown", "none"),
        ]);
        assert_eq!(all.unwrap(), report("10:00", "unknown", "none"));
    }

    #[test]
    fn the_last_sign_of_all_pods_counts() {
        let all = together(&[
            report("10:00", "09:00", "none"),
            report("10:04", "09:30", "10:02"),
        ]);
        assert_eq!(all.unwrap(), report("10:00", "09:30", "10:00"));
    }
}
