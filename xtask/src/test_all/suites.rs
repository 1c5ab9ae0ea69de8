//! All suites.

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
}

const fn suite(
    name: &'static str,
    proves: &'static str,
    make: &'static [&'static str],
    minutes: u64,
) -> Suite {
    Suite {
        name,
        proves,
        make,
        minutes,
        counts: true,
    }
}

/// The suites in the order in which `make test-all` runs them: suites that fail sooner come first.
pub(super) static SUITES: &[Suite] = &[
    Suite {
        name: "check",
        proves: "formatting, lints, licences",
        make: &["check"],
        minutes: 2,
        counts: false,
    },
    suite(
        "unit",
        "every crate, and simulations with all their seeds",
        &["unit"],
        10,
    ),
    suite(
        "conformance",
        "the function keeps Crossplane's specification",
        &["conformance"],
        2,
    ),
    suite("workspace", "what pods are given to run", &["workspace"], 1),
    suite(
        "docs",
        "the documentation's commands, manifests and links",
        &["docs"],
        1,
    ),
    suite("argocd", "the health that Argo CD shows", &["argocd"], 3),
    suite(
        "package",
        "packages are reproducible, their contents listed",
        &["package"],
        4,
    ),
    suite("emulator", "EC2 as AWS documents it", &["emulator"], 5),
    suite(
        "user-data",
        "what instances are given to run, booted",
        &["user-data"],
        3,
    ),
    suite(
        "cluster",
        "the local cluster from up to down",
        &["cluster"],
        4,
    ),
    suite(
        "main",
        "a claim to its instance and back",
        &["e2e", "SUITE=main"],
        15,
    ),
    suite(
        "namespaced",
        "workspaces without claims",
        &["e2e", "SUITE=namespaced"],
        5,
    ),
    suite(
        "install",
        "installing, upgrading, removing as documented",
        &["e2e", "SUITE=install"],
        5,
    ),
    suite(
        "upbound",
        "workspaces on demand",
        &["e2e", "SUITE=upbound"],
        15,
    ),
    suite(
        "gitops",
        "from a push to a machine under Argo CD",
        &["e2e", "SUITE=gitops"],
        15,
    ),
    suite("pods", "workspaces as pods", &["e2e", "SUITE=cluster"], 15),
    suite(
        "on-cluster",
        "what pods are given to run, in pods",
        &["on-cluster"],
        8,
    ),
    suite(
        "lifecycle",
        "limits, idle stops, budgets, homes",
        &["e2e", "SUITE=lifecycle"],
        30,
    ),
    suite(
        "faults",
        "a provider that is killed while EC2 fails",
        &["e2e", "SUITE=faults"],
        15,
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
