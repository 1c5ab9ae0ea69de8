//! All suites.

use Turn::{Alone, FirstLane, OwnLane, SecondLane};

/// Tests that pass or fail together.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// What users lose if it fails, in a few words.
    pub(super) proves: &'static str,
    /// The arguments of make.
    pub(super) make: &'static [&'static str],
    /// Its typical duration in minutes, on two processors.
    pub(super) minutes: u64,
    /// Whether its output counts tests. Such a suite fails if no test passed.
    pub(super) counts: bool,
    /// What runs beside it in `make test-all`.
    pub(super) turn: Turn,
}

/// When `make test-all` runs a suite. Most suites wait most of their time, so several run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Before all others.
    First,
    /// One after the other, beside the second lane.
    FirstLane,
    /// Beside the first lane. The other lanes run these, too, when they have run their own suites.
    SecondLane,
    /// From the beginning, beside all other lanes: it lasts longer than others, and mostly waits.
    OwnLane,
    /// After all lanes, with nothing beside it: it measures how long something takes, or needs
    /// both processors for minutes.
    Alone,
}

const fn suite(
    name: &'static str,
    proves: &'static str,
    make: &'static [&'static str],
    minutes: u64,
    turn: Turn,
) -> Suite {
    Suite {
        name,
        proves,
        make,
        minutes,
        counts: true,
        turn,
    }
}

/// The suites. Each lane runs its suites in this order: suites that fail sooner come first.
pub(super) static SUITES: &[Suite] = &[
    Suite {
        name: "check",
        proves: "formatting, lints, licences",
        make: &["check"],
        minutes: 2,
        counts: false,
        turn: Turn::First,
    },
    suite(
        "unit",
        "every crate, and simulations with all their seeds",
        &["unit"],
        15,
        SecondLane,
    ),
    suite(
        "conformance",
        "the function keeps Crossplane's specification",
        &["conformance"],
        2,
        SecondLane,
    ),
    suite(
        "workspace",
        "what pods are given to run",
        &["workspace"],
        1,
        SecondLane,
    ),
    suite(
        "portal",
        "who signs in, and what they see and change",
        &["portal"],
        3,
        SecondLane,
    ),
    suite(
        "docs",
        "the documentation's commands, manifests and links",
        &["docs"],
        1,
        SecondLane,
    ),
    suite(
        "argocd",
        "the health that Argo CD shows",
        &["argocd"],
        3,
        SecondLane,
    ),
    suite(
        "package",
        "packages are reproducible, their contents listed",
        &["package"],
        4,
        SecondLane,
    ),
    suite(
        "emulator",
        "EC2 as AWS documents it",
        &["emulator"],
        5,
        SecondLane,
    ),
    suite(
        "user-data",
        "what instances are given to run, booted",
        &["user-data"],
        6,
        SecondLane,
    ),
    suite(
        "cluster",
        "the local cluster from up to down",
        &["cluster"],
        4,
        FirstLane,
    ),
    suite(
        "main",
        "a claim to its instance and back",
        &["e2e", "SUITE=main"],
        15,
        FirstLane,
    ),
    suite(
        "namespaced",
        "workspaces without claims",
        &["e2e", "SUITE=namespaced"],
        5,
        FirstLane,
    ),
    suite(
        "install",
        "installing, upgrading, removing as documented",
        &["e2e", "SUITE=install"],
        5,
        FirstLane,
    ),
    suite(
        "restore",
        "a lost control plane from its backup",
        &["e2e", "SUITE=restore"],
        5,
        FirstLane,
    ),
    suite(
        "faults",
        "a provider that is killed while EC2 fails",
        &["e2e", "SUITE=faults"],
        29,
        FirstLane,
    ),
    suite(
        "upbound",
        "on-demand workspaces of provider-aws",
        &["e2e", "SUITE=upbound"],
        43,
        OwnLane,
    ),
    suite(
        "gitops",
        "from a push to a machine under Argo CD",
        &["e2e", "SUITE=gitops"],
        15,
        SecondLane,
    ),
    suite(
        "on-cluster",
        "what pods are given to run, in pods",
        &["on-cluster"],
        8,
        SecondLane,
    ),
    suite(
        "pods",
        "workspaces as pods",
        &["e2e", "SUITE=cluster"],
        20,
        Alone,
    ),
    suite(
        "devctl",
        "the command line, as owners run it",
        &["e2e", "SUITE=devctl"],
        20,
        SecondLane,
    ),
    suite(
        "speed",
        "devctl is quick and small",
        &["e2e", "SUITE=speed"],
        5,
        Alone,
    ),
    suite(
        "bastion",
        "the door: who may come in, and what is written down",
        &["e2e", "SUITE=bastion"],
        17,
        Alone,
    ),
    suite(
        "portal-on-cluster",
        "a workspace in a browser, from sign-in to its SSH line",
        &["e2e", "SUITE=portal"],
        15,
        SecondLane,
    ),
    suite(
        "lifecycle",
        "limits, idle stops, budgets, homes",
        &["e2e", "SUITE=lifecycle"],
        30,
        Alone,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A suite that nothing runs would never show a failure.
    #[test]
    fn every_end_to_end_suite_is_run_and_every_target_exists() {
        let root = crate::root();
        let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
        for suite in SUITES {
            let target = format!("\n{}:", suite.make[0]);
            assert!(makefile.contains(&target), "no target {}", suite.make[0]);
        }
        for entry in std::fs::read_dir(root.join("tests/e2e")).unwrap() {
            let folder = entry.unwrap().path();
            let holds_tests = folder.is_dir()
                && std::fs::read_dir(&folder).unwrap().any(|file| {
                    let name = file.unwrap().file_name();
                    name.to_string_lossy().starts_with("test_")
                });
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let wanted = format!("SUITE={name}");
            let is_run = SUITES
                .iter()
                .any(|suite| suite.make.contains(&wanted.as_str()));
            assert!(
                is_run || !holds_tests,
                "tests/e2e/{name} is run by no suite"
            );
        }
    }
}
