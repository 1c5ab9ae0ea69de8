use super::*;
use crate::layout::Differences;
use crate::network::Addresses;
use crate::state::StateFolder;

fn layout() -> Layout {
    Layout {
        name: "test".to_owned(),
        addresses: Addresses::new(1),
        state: StateFolder::at("/cache/clusters/test".into()),
        cache: "/cache".into(),
        binaries: crate::binaries::Binaries::default(),
        python: "/cache/python".into(),
        differences: Differences::default(),
    }
}

fn file(name: &str) -> String {
    files(&layout())
        .into_iter()
        .find(|(path, _)| path == Path::new(name))
        .map(|(_, text)| text)
        .unwrap()
}

#[test]
fn the_runtime_takes_images_from_this_clusters_registry_only_by_http() {
    let toml = file("containerd.toml");
    assert!(
        toml.contains("sandbox = '10.244.1.1:5000/pause:local'"),
        "{toml}"
    );
    assert!(
        toml.contains("root = '/cache/clusters/test/data/containerd'"),
        "{toml}"
    );
    let registries = "/cache/clusters/test/configuration/registries";
    assert!(
        toml.contains(&format!("config_path = '{registries}'")),
        "{toml}"
    );
    assert_eq!(
        file("registries/10.244.1.1:5000/hosts.toml"),
        "server = \"http://10.244.1.1:5000\"\n"
    );
}

#[test]
fn the_api_server_trusts_the_issuer_that_dex_says_it_is() {
    let dex = identities::configuration(&layout());
    assert_eq!(dex["issuer"], "https://10.244.1.1:5556/dex");
    assert_eq!(dex["web"]["https"], "10.244.1.1:5556");
    let callback = "https://10.243.1.2:30443/login/callback";
    assert_eq!(dex["staticClients"][0]["redirectURIs"], json!([callback]));
    let trusted = identities::authentication(layout().addresses, "the authority");
    let issuer = &trusted["jwt"][0]["issuer"];
    assert_eq!(issuer["url"], dex["issuer"]);
    assert_eq!(issuer["audiences"], json!([dex["staticClients"][0]["id"]]));
    assert_eq!(issuer["certificateAuthority"], "the authority");
}

#[test]
fn pods_get_addresses_of_this_cluster_and_ask_its_dns() {
    let network = pod_network(&layout());
    let range = &network["plugins"][0]["ipam"]["ranges"][0][0];
    assert_eq!(range["subnet"], "10.244.1.0/24");
    assert_eq!(range["gateway"], "10.244.1.1");
    assert_eq!(kubelet(&layout())["clusterDNS"], json!(["10.96.0.10"]));
    assert!(file("Corefile").contains("bind 10.244.1.1\n"));
    let [service, endpoints] = dns_objects(&layout());
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.10");
    assert_eq!(endpoints["endpoints"][0]["addresses"][0], "10.244.1.1");
}

#[test]
fn a_container_that_crashes_waits_as_long_as_the_cluster_was_told() {
    let mut layout = layout();
    assert_eq!(kubelet(&layout).get("crashLoopBackOff"), None);
    layout.differences.restart_pause = Some(1);
    let waits = &kubelet(&layout)["crashLoopBackOff"]["maxContainerRestartPeriod"];
    assert_eq!(waits, "1s");
}

#[test]
fn the_kubelet_is_shown_kernel_settings_instead_of_writing_the_hosts() {
    let shown: Vec<_> = kernel_settings(&layout()).collect();
    assert_eq!(shown.len(), 6);
    let (ours, theirs) = shown
        .iter()
        .find(|(_, shown)| shown.ends_with("vm/overcommit_memory"))
        .unwrap();
    assert_eq!(theirs, Path::new("/proc/sys/vm/overcommit_memory"));
    let name = ours
        .strip_prefix("/cache/clusters/test/configuration")
        .unwrap();
    assert_eq!(file(name.to_str().unwrap()), "1\n");
}

#[test]
fn a_kubeconfig_names_its_clients_own_certificate() {
    let config = kubeconfig(&layout(), "scheduler");
    let user = &config["users"][0]["user"];
    assert_eq!(
        user["client-certificate"],
        "/cache/clusters/test/certificates/scheduler.crt"
    );
    assert_eq!(
        config["clusters"][0]["cluster"]["server"],
        "https://10.243.1.2:6443"
    );
}
