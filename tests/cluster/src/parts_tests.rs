use super::*;
use crate::binaries::Binaries;
use crate::layout::Differences;
use crate::network::Addresses;
use crate::state::StateFolder;

fn layout_of(index: u8) -> Layout {
    Layout {
        name: "test".to_owned(),
        addresses: Addresses::new(index),
        state: StateFolder::at("/cache/clusters/test".into()),
        cache: "/cache".into(),
        binaries: Binaries::default(),
        python: "/cache/python".into(),
        differences: Differences::default(),
    }
}

fn plan_of(index: u8) -> Plan {
    plan(&layout_of(index))
}

fn arguments(plan: &Plan, name: &str) -> Vec<String> {
    let part = plan.parts.iter().find(|part| part.name == name).unwrap();
    part.arguments.clone()
}

#[test]
fn every_part_waits_only_for_parts_that_are_started_before_it() {
    let plan = plan_of(0);
    let mut startable: Vec<&str> = Vec::new();
    while startable.len() < plan.parts.len() {
        let next = plan.parts.iter().find(|part| {
            !startable.contains(&part.name.as_str())
                && part
                    .after
                    .iter()
                    .all(|name| startable.contains(&name.as_str()))
        });
        startable.push(&next.unwrap().name);
    }
}

#[test]
fn what_the_host_talks_to_listens_on_this_clusters_addresses() {
    let plan = plan_of(3);
    let apiserver = arguments(&plan, "kube-apiserver");
    assert!(apiserver.contains(&"--bind-address=10.243.3.2".to_owned()));
    let registry = arguments(&plan, "registry");
    assert!(registry.contains(&"10.244.3.1:5000".to_owned()));
    let emulator = arguments(&plan, "ec2-emulator");
    assert_eq!(
        emulator[2..],
        [
            "--host",
            "10.244.3.1",
            "--port",
            "4566",
            "--agent-host",
            "169.254.170.23",
            "--machines",
            "/cache/clusters/test/data/machines",
            "--machine-network",
            "10.245.3.0/24",
        ]
    );
}

#[test]
fn kubectl_logs_and_exec_have_the_certificates_that_they_need() {
    let apiserver = arguments(&plan_of(0), "kube-apiserver").join(" ");
    for flag in [
        "--kubelet-certificate-authority=",
        "--kubelet-client-certificate=",
        "--kubelet-client-key=",
        "--kubelet-preferred-address-types=InternalIP",
    ] {
        assert!(apiserver.contains(flag), "{flag}");
    }
}

#[test]
fn a_feature_that_is_switched_off_is_off_in_the_api_server() {
    let gates = "ConstrainedImpersonation=false";
    let layout = Layout {
        differences: Differences {
            feature_gates: Some(gates.to_owned()),
            ..Differences::default()
        },
        ..layout_of(0)
    };
    let given = arguments(&plan(&layout), "kube-apiserver");
    assert!(given.contains(&format!("--feature-gates={gates}")));
    let defaults = arguments(&plan_of(0), "kube-apiserver").join(" ");
    assert!(!defaults.contains("--feature-gates"));
}

#[test]
fn a_cluster_that_asks_has_a_provider_whose_tokens_its_api_server_takes() {
    let layout = Layout {
        differences: Differences {
            identities: true,
            ..Differences::default()
        },
        ..layout_of(3)
    };
    let with = plan(&layout);
    let given = arguments(&with, "kube-apiserver");
    let file = "/cache/clusters/test/configuration/authentication.json";
    assert!(given.contains(&format!("--authentication-config={file}")));
    let configuration = "/cache/clusters/test/configuration/dex.json";
    assert_eq!(arguments(&with, "dex"), ["serve", configuration]);
    let without = plan_of(3);
    assert!(without.parts.iter().all(|part| part.name != "dex"));
    let defaults = arguments(&without, "kube-apiserver").join(" ");
    assert!(!defaults.contains("--authentication-config"));
}

#[test]
fn no_part_inherits_the_variables_of_whoever_started_the_cluster() {
    let plan = plan_of(0);
    let names: Vec<_> = plan
        .environment
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["PATH", "HOME", "TMPDIR"]);
    assert!(
        plan.environment[0]
            .1
            .starts_with("/cache/clusters/test/bin:")
    );
}

#[test]
fn containers_of_two_clusters_never_share_a_cgroup() {
    assert_ne!(plan_of(1).cgroup, plan_of(2).cgroup);
}

#[test]
fn a_plan_survives_the_way_to_init() {
    let plan = plan_of(0);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}
