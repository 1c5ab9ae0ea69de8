//! User data. An instance runs it as root, so a text that a person writes must never leave its YAML
//! scalar.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use api::policy::BehaviourVersion;
use function_ec2::software::{Pytorch, PytorchSource, Software};
use function_ec2::user_data::UserData;
use function_sdk_rust::resource::struct_to_json;
use serde_json::{Value, json};

use case::answer;

const SETUP: &str = include_str!("../ec2/src/user_data/setup.sh");

const NASTY: [&str; 32] = [
    "alice\nruncmd:\n- [reboot]",
    "a: b",
    "- a",
    "# not a comment",
    "a # b",
    "\"",
    "'",
    "\\",
    "{a: b}",
    "[a]",
    "*alias",
    "&anchor a",
    "!!python/object:os.system",
    "%YAML 1.1",
    "---\n...",
    "| ",
    "> ",
    "yes",
    "~",
    "null",
    "0644",
    "1_000",
    "1e3",
    "",
    " lead",
    "trail ",
    "a\tb",
    "a\r\nb",
    "$(reboot)`reboot`",
    "\u{0}\u{7}\u{1b}[0m",
    "\u{85}\u{2028}\u{feff}",
    "😀\u{7f}",
];

fn composed(name: &str) -> String {
    let desired = answer(&case::request(name)).desired.unwrap();
    let pool = struct_to_json(desired.resources["pool"].resource.as_ref().unwrap());
    pool["spec"]["forProvider"]["userData"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The user data of an on-demand instance.
fn with_home(name: &str) -> String {
    let desired = answer(&case::request(name)).desired.unwrap();
    let mut found = desired.resources.values().filter_map(|composed| {
        let object = struct_to_json(composed.resource.as_ref()?);
        let user_data = &object["spec"]["forProvider"]["userData"];
        user_data.as_str().map(str::to_owned)
    });
    found.next().unwrap()
}

/// Only the boot of a workspace with a home mounts a home volume.
#[test]
fn a_workspace_without_a_home_looks_for_no_disk() {
    let mounts = |document: &str| document.contains("gpu-workspace-home");
    assert!(!mounts(&composed("new-workspace")));
    assert!(mounts(&with_home("on-demand-new")));
    let commands = parsed(&with_home("on-demand-new"))["runcmd"].clone();
    let setup = json!(["/usr/local/lib/gpu-workspace/setup"]);
    assert_eq!(commands.as_array().unwrap().last(), Some(&setup));
    let keys = "/etc/gpu-workspace/keys/developer";
    let document = parsed(&with_home("on-demand-new"));
    assert!(file(&document, keys).ends_with("alice@laptop\n"));
    let user = &document["users"][0];
    assert_eq!(
        user.get("ssh_authorized_keys"),
        None,
        "an old home would keep them"
    );
}

#[test]
fn the_agent_is_installed_where_the_policy_has_one_and_delays_nothing() {
    let document = parsed(&composed("with-an-agent"));
    let settings = file(&document, "/etc/gpu-workspace/agent.env");
    let url = "https://packages.acme.example/gpu-workspace-agent/0.1.0/linux-amd64";
    assert!(settings.starts_with(&format!("AGENT_URL='{url}'\nAGENT_SHA256='0123")));
    assert!(settings.ends_with("\nAGENT_REPORT_SECONDS='120'\n"));
    let unit = "gpu-workspace-agent.service";
    let commands = json!([
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", unit],
        ["systemctl", "start", "--no-block", unit],
        ["/usr/local/lib/gpu-workspace/setup"]
    ]);
    assert_eq!(document["runcmd"], commands);
    assert!(!composed("new-workspace").contains("agent"));
    assert!(!with_home("on-demand-new").contains("agent"));
}

#[test]
fn host_keys_are_kept_with_home_where_an_agent_tells_them() {
    let script = |name: &str| {
        file(
            &parsed(&with_home(name)),
            "/usr/local/lib/gpu-workspace/home",
        )
    };
    let keeps = |script: &str| script.contains("ssh_host_*_key");
    assert!(keeps(&script("with-an-agent-and-a-home")));
    assert!(!keeps(&script("on-demand-new")));
    let rest = "touch $run/home-ready\nsay 'home is mounted'\n";
    assert!(script("with-an-agent-and-a-home").ends_with(rest));
}

fn parsed(document: &str) -> Value {
    assert_eq!(document.lines().next(), Some("#cloud-config"));
    serde_yaml::from_str(document).unwrap()
}

fn file(config: &Value, path: &str) -> String {
    let files = config["write_files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == path).unwrap();
    file["content"].as_str().unwrap().to_owned()
}

#[test]
fn whatever_an_owner_types_stays_in_its_scalar() {
    for nasty in NASTY {
        let keys = [nasty.to_owned(), format!("ssh-ed25519 AAAA {nasty}")];
        let software = Software {
            opencv: nasty.to_owned(),
            requirements: vec![format!("opencv-python-headless=={nasty}")],
            pytorch: Some(Pytorch {
                version: nasty.to_owned(),
                source: PytorchSource::Index {
                    url: nasty.to_owned(),
                },
            }),
            python: None,
        };
        let user_data = UserData {
            behaviour: BehaviourVersion::V2,
            owner: nasty,
            public_keys: &keys,
            sudo: false,
            software: &software,
            ca_certificates: &[],
            package_index: None,
            image_id: "ami-1",
            home: false,
            agent: None,
        };
        let config = parsed(&user_data.document().unwrap());
        let mut fields: Vec<_> = config.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(
            fields,
            ["runcmd", "ssh_pwauth", "users", "write_files"],
            "{nasty:?}"
        );
        assert_eq!(
            config["users"][0]["ssh_authorized_keys"],
            json!(keys),
            "{nasty:?}"
        );
        assert_eq!(
            config["runcmd"],
            json!([["/usr/local/lib/gpu-workspace/setup"]]),
            "{nasty:?}"
        );
        assert_eq!(
            file(&config, "/usr/local/lib/gpu-workspace/setup"),
            SETUP,
            "{nasty:?}"
        );
        let workspace = file(&config, "/etc/gpu-workspace/workspace.json");
        let workspace: Value = serde_json::from_str(&workspace).unwrap();
        let expected = json!({
            "owner": nasty, "opencvVersion": nasty, "pytorchVersion": nasty, "pytorchIndexUrl": nasty
        });
        assert_eq!(workspace, expected, "{nasty:?}");
    }
}

/// Every pool and every instance carries its user data, and a gRPC message has at most 4 MiB.
#[test]
fn user_data_stays_small() {
    for name in ["new-workspace", "everything-asked-for"] {
        let length = composed(name).len();
        assert!(length <= 4096, "{name}: {length}");
    }
    let length = with_home("on-demand-new").len();
    assert!(length <= 8192, "with a home volume: {length}");
    let length = with_home("with-an-agent-and-a-home").len();
    assert!(length <= 12_288, "with an agent besides: {length}");
    let rsa = format!("ssh-rsa {}", "A".repeat(716));
    let software = Software {
        opencv: "4.8.0".into(),
        requirements: vec!["opencv-python-headless==4.8.0.*".into()],
        pytorch: None,
        python: None,
    };
    let without = |keys: &[String]| {
        let data = UserData {
            behaviour: BehaviourVersion::V2,
            owner: "alice",
            public_keys: keys,
            sudo: true,
            software: &software,
            ca_certificates: &[],
            package_index: None,
            image_id: "ami-1",
            home: false,
            agent: None,
        };
        data.document().map(|document| document.len())
    };
    assert!(without(std::slice::from_ref(&rsa)).unwrap() <= 4096);
    assert!(without(&vec![rsa.clone(); 15]).unwrap() <= 16 * 1024);
    let refused = without(&vec![rsa; 20]).unwrap_err();
    assert_eq!(refused.reason(), "ParametersInvalid");
    assert!(refused.to_string().contains("16384 bytes"), "{refused}");
}

/// EC2 takes 16 KiB. One is left for the features to come.
#[test]
fn the_largest_user_data_with_digests_leaves_one_kib() {
    let largest = with_home("v3-largest-user-data");
    for feature in [
        "--hash=sha256:",
        "agent.env",
        "gpu-workspace-home",
        "cert-authority",
    ] {
        assert!(largest.contains(feature), "{feature}");
    }
    assert!(largest.len() <= 15 * 1024, "{}", largest.len());
}

#[test]
fn root_is_for_those_whom_the_policy_trusts() {
    let sudo = |name: &str| parsed(&composed(name))["users"][0].get("sudo").cloned();
    assert_eq!(sudo("new-workspace"), Some(json!("ALL=(ALL) NOPASSWD:ALL")));
    assert_eq!(sudo("only-an-owner"), None);
}

#[test]
fn the_user_logs_in_by_key_only() {
    let config = parsed(&composed("everything-asked-for"));
    let user = &config["users"][0];
    assert_eq!(user["name"], "developer");
    assert_eq!(user["lock_passwd"], true);
    assert_eq!(user["shell"], "/bin/bash");
    assert_eq!(config["ssh_pwauth"], false);
    let keys = user["ssh_authorized_keys"].as_array().unwrap();
    assert_eq!(
        keys.len(),
        2,
        "the catalogue's key, then the claim's own: {keys:?}"
    );
    assert!(keys[0].as_str().unwrap().starts_with("ssh-ed25519 "));
    assert_eq!(config.get("hostname"), None);
}

#[test]
fn one_opencv_is_installed_and_pytorch_comes_from_where_it_is() {
    let workspace = |name: &str| -> Value {
        let text = file(
            &parsed(&composed(name)),
            "/etc/gpu-workspace/workspace.json",
        );
        serde_json::from_str(&text).unwrap()
    };
    let requirements = |name: &str| {
        file(
            &parsed(&composed(name)),
            "/etc/gpu-workspace/requirements.txt",
        )
    };
    assert_eq!(
        requirements("new-workspace"),
        "opencv-python-headless==4.8.0.*\nnumpy<2\n"
    );
    assert_eq!(
        requirements("everything-asked-for"),
        "opencv-python-headless==4.11.0.86\n"
    );
    assert_eq!(
        workspace("new-workspace"),
        json!({
            "owner": "alice", "opencvVersion": "4.8.0", "pytorchVersion": "2.12.1",
            "pytorchPython": "/opt/pytorch/bin/python3"
        })
    );
    assert_eq!(
        workspace("everything-asked-for"),
        json!({
            "owner": "alice", "opencvVersion": "4.11.0.86", "pytorchVersion": "2.13.0",
            "pytorchIndexUrl": "https://packages.acme.example/pytorch/cu130"
        })
    );
}

/// cloud-init also accepts a number as a file mode, but the versions of YAML read `0644` as
/// different numbers.
#[test]
fn file_modes_are_strings_in_every_version_of_yaml() {
    let document = composed("new-workspace");
    let modes = document
        .lines()
        .filter(|line| line.contains("permissions:"));
    let modes: Vec<_> = modes.map(str::trim).collect();
    assert_eq!(
        modes,
        [
            "permissions: '0644'",
            "permissions: '0644'",
            "permissions: '0755'"
        ]
    );
}
