use super::*;

#[test]
fn a_program_is_found_where_go_links_it() {
    let names = [
        ("go.etcd.io/etcd/server/v3", "server"),
        ("github.com/argoproj/argo-cd/v3/cmd", "cmd"),
        ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
        ("./coredns", "coredns"),
        (".", "probe"),
    ];
    for (package, name) in names {
        assert_eq!(file_name(package, "probe"), name, "{package}");
    }
}

#[test]
fn programs_of_one_module_are_built_by_one_call_and_unknown_ones_are_refused() {
    let found = by_module(&["kubelet", "etcd", "argocd"]).unwrap();
    let names: Vec<Vec<_>> = found
        .iter()
        .map(|(_, binaries)| binaries.iter().map(|binary| binary.name).collect())
        .collect();
    assert_eq!(names, [vec!["etcd", "kubelet"], vec!["argocd"]]);
    assert!(matches!(by_module(&["kublet"]), Err(Error::Unknown(name)) if name == "kublet"));
}
