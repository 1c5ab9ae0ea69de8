use super::*;
use function_runtime::json::Json;
use serde_json::json;

const NOTHING: BTreeMap<String, Json<'static>> = BTreeMap::new();

fn composite(claim: &str, uid: &str) -> Json<'static> {
    json!({
        "metadata": {"name": format!("{claim}-x7k2p"), "uid": uid},
        "spec": {"claimRef": {"namespace": "team-vision", "name": claim}},
    })
    .into()
}

fn named(
    claim: &str,
    version: BehaviourVersion,
    observed: &BTreeMap<String, Json<'_>>,
    has_earlier_homes: bool,
) -> Names {
    let composite = composite(claim, "5f1f7a0e");
    let composite = Composite::new(&composite);
    let naming = Naming {
        origin: &composite.origin().unwrap(),
        composite,
        observed,
        version: Some(version),
        has_earlier_homes,
    };
    naming.names("cluster.local")
}

/// The names of a claim without objects.
pub fn names(claim: &str, version: BehaviourVersion) -> Names {
    named(claim, version, &NOTHING, false)
}

fn all(names: &Names) -> Vec<String> {
    vec![
        names.name.clone(),
        names.service_account(),
        names.role(),
        names.role_binding(),
        names.network_policy(),
        names.host_keys(),
        names.files(),
        names.authorized_keys(),
        names.activity(0),
    ]
}

#[test]
fn a_pod_is_found_by_its_full_name() {
    let host = |version| names("alice-vision", version).host(1);
    assert_eq!(
        host(BehaviourVersion::V2),
        "alice-vision-1.alice-vision.team-vision.svc.cluster.local"
    );
    assert_eq!(
        host(BehaviourVersion::V3),
        "gpuws-alice-vision-1.gpuws-alice-vision.team-vision.svc.cluster.local"
    );
}

#[test]
fn a_claim_name_that_is_invalid_for_a_service_is_replaced() {
    for claim in ["1-first", "alice.vision", &"a".repeat(48)] {
        let name = names(claim, BehaviourVersion::V2).name;
        assert!(
            name.starts_with("workspace-") && name.len() <= LONGEST,
            "{name}"
        );
    }
    let long = "a".repeat(47);
    assert_eq!(names(&long, BehaviourVersion::V2).name, long);
}

#[test]
fn a_claim_name_that_is_too_long_for_a_prefix_gets_64_bits() {
    for claim in ["alice.vision", &"a".repeat(42)] {
        let name = names(claim, BehaviourVersion::V3).name;
        let hash = name.strip_prefix("gpu-workspace-").unwrap();
        assert!(hash.len() == 16 && name.len() <= LONGEST, "{name}");
    }
    let long = "a".repeat(41);
    let name = names(&long, BehaviourVersion::V3).name;
    assert_eq!(name, format!("gpuws-{long}"));
}

/// What an attacker would take over: accounts, policies and objects of a user's namespace.
#[test]
fn no_claim_name_gives_the_name_of_somebody_elses_object() {
    let claims = [
        "default",
        "default-deny",
        "kubernetes",
        "ci-deployer",
        "owner",
        "quota",
        "kube-root-ca.crt",
        "container-defaults",
    ];
    for claim in claims {
        for name in all(&names(claim, BehaviourVersion::V3)) {
            let is_ours = name.starts_with("gpuws-") || name.starts_with("gpu-workspace-");
            assert!(is_ours, "{claim} gives {name}");
        }
    }
}

#[test]
fn objects_of_an_earlier_version_keep_their_names() {
    let object = |name: &str| json!({"metadata": {"name": name}});
    let observed = [
        (resource_names::SERVICE, object("alice-vision")),
        (resource_names::HOST_KEYS, object("alice-vision-host-keys")),
        ("cluster-activity-0", object("alice-vision-0-activity")),
    ];
    let observed = observed.map(|(key, object)| (key.to_owned(), object.into()));
    let names = named(
        "alice-vision",
        BehaviourVersion::V3,
        &observed.into(),
        false,
    );
    assert_eq!(names.name, "alice-vision");
    assert_eq!(names.host_keys(), "alice-vision-host-keys");
    assert_eq!(names.activity(1), "alice-vision-1-activity");
    assert!(
        names.role().starts_with("alice-vision-"),
        "{}",
        names.role()
    );
}

#[test]
fn a_recreated_claim_finds_the_home_that_an_earlier_version_made() {
    let v3 = BehaviourVersion::V3;
    let names = |has_homes| named("default", v3, &NOTHING, has_homes);
    assert_eq!(names(true).home(0), "home-default-0");
    assert_eq!(names(false).home(0), "home-gpuws-default-0");
    assert_ne!(names(true).service_account(), "default");
}
