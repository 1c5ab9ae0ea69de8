//! Pushes packages to a registry and installs them in Crossplane.

use std::error::Error;

use local_cluster::progress::Progress;

use super::build::{Built, Request, build};
use super::compile::{Profile, Source};
use super::contents::{Composites, ORGANISATION, Package};
use super::platform::Platform;
use super::{dependencies, push};
use crate::process::output;
use crate::target::Resolved;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The `DeploymentRuntimeConfig` of the provider beside an emulator. The end-to-end tests return to
/// it (tests/e2e/environment/runtime.py).
const BESIDE_EMULATOR: &str = "provider-gpu-spot-beside-emulator";

/// Builds the packages for this machine, pushes and installs them, and waits until Crossplane
/// reports each as healthy.
pub(crate) fn install(
    target: &Resolved,
    composites: Composites,
    progress: &Progress,
) -> Outcome<()> {
    refuse_both(target, composites)?;
    let crane = crate::target::crane(progress)?;
    let request = Request {
        profile: Profile::Dev,
        platforms: &[Platform::host()],
        registry: &target.registry,
        holds: &|repository| dependencies::holds(&crane, &target.registry, repository),
    };
    let packages = build(&target.crossplane, &Source::here(), &request, progress)?;
    let mut complete = Vec::new();
    for built in &packages.built {
        if !composites.include(built.package) {
            continue;
        }
        match left_out(built)? {
            Some(reason) => progress.note(&reason),
            None => complete.push(built),
        }
    }
    let step = progress.begin("push packages");
    let mut pushed = Vec::new();
    for built in complete {
        let command = target.command(&target.crossplane);
        let reference = push::push(command, &target.registry, built)?;
        pushed.push((built.package, reference, built.tag.clone()));
    }
    step.end("pushed");
    // The registry has them now. Another process may build while Crossplane installs these.
    drop(packages);
    for (package, reference, tag) in pushed {
        let step = progress.begin(&format!("install {}", package.name));
        put(target, package, &reference)?;
        step.end(&tag);
    }
    Ok(())
}

/// Why a package is not installed; none if it is. Without its dependencies in the registry it would
/// never become healthy, and only an addition may be left out.
fn left_out(built: &Built) -> Outcome<Option<String>> {
    let Built {
        package, missing, ..
    } = built;
    if missing.is_empty() {
        return Ok(None);
    }
    let reason = format!(
        "{} is not installed: the registry lacks {}",
        package.name,
        missing.join(", ")
    );
    if package.is_addition() {
        Ok(Some(reason))
    } else {
        Err(reason.into())
    }
}

/// Fails if the cluster has the other configuration. Crossplane establishes only one XRD per kind,
/// so a second configuration would never become healthy.
fn refuse_both(target: &Resolved, composites: Composites) -> Outcome<()> {
    let object = format!("xrd/{}", composites.other().xrd());
    let mut existing = target.kubectl();
    existing.args(["get", &object, "--ignore-not-found", "-o", "name"]);
    if output(&mut existing)?.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{object} is there, and {} defines the same kind: docs/namespaced.md says how to go \
         from one to the other",
        composites.configuration()
    )
    .into())
}

/// Applies the `DeploymentRuntimeConfig` of a package, and returns its name. That of the function
/// gives it the platform's limits. That of a provider beside an emulator lets a `ProviderConfig` name
/// the emulator.
fn runtime(target: &Resolved, package: &Package) -> Outcome<Option<&'static str>> {
    match (package.kind, &target.emulator) {
        ("function", _) => {
            target.apply_file("examples/platform/function-runtime.yaml")?;
            Ok(Some("function-gpu-workspace"))
        }
        ("provider", Some(endpoint)) => {
            target.apply_text(&beside_emulator(endpoint).to_string())?;
            Ok(Some(BESIDE_EMULATOR))
        }
        _ => Ok(None),
    }
}

/// How Crossplane runs the provider beside an emulator: a `ProviderConfig` may name only the servers
/// of this flag.
fn beside_emulator(endpoint: &str) -> serde_json::Value {
    let arguments = [format!("--allowed-endpoints={endpoint}")];
    let container = serde_json::json!({
        "name": "package-runtime",
        "args": arguments,
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
    });
    let pod = serde_json::json!({"spec": {"containers": [container]}});
    serde_json::json!({
        "apiVersion": "pkg.crossplane.io/v1beta1",
        "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": BESIDE_EMULATOR},
        "spec": {"deploymentTemplate": {"spec": {"selector": {}, "template": pod}}},
    })
}

/// Installs a package with Crossplane's own command, or changes the reference of an installed
/// package.
fn put(target: &Resolved, package: &Package, reference: &str) -> Outcome<()> {
    let object = format!(
        "{}.pkg.crossplane.io/{ORGANISATION}-{}",
        package.kind, package.name
    );
    let mut existing = target.kubectl();
    existing.args([
        "get",
        &object,
        "--ignore-not-found",
        "-o",
        "jsonpath={.spec.package}",
    ]);
    let installed = output(&mut existing)?;
    let runtime = runtime(target, package)?;
    if installed.is_empty() {
        let mut install = target.command(&target.crossplane);
        install.args(["xpkg", "install", package.kind, reference]);
        install.args(runtime.map(|name| format!("--runtime-config={name}")));
        output(&mut install)?;
    } else if installed != reference {
        let mut spec = serde_json::json!({"package": reference});
        if let Some(name) = runtime {
            spec["runtimeConfigRef"] = serde_json::json!({"name": name});
        }
        let patch = serde_json::json!({"spec": spec}).to_string();
        output(
            target
                .kubectl()
                .args(["patch", &object, "--type=merge", "-p", &patch]),
        )?;
    }
    await_healthy(target, &object, reference)
}

/// Waits until a package is healthy. After a change of the reference, Crossplane reports the old
/// revision as healthy until it has processed the new one. So this waits for the new reference
/// first.
fn await_healthy(target: &Resolved, object: &str, reference: &str) -> Outcome<()> {
    let wanted = format!("jsonpath={{.status.resolvedPackage}}={reference}");
    for condition in [wanted.as_str(), "condition=Installed", "condition=Healthy"] {
        let mut wait = target.kubectl();
        wait.args(["wait", object, "--timeout=120s"])
            .arg(format!("--for={condition}"));
        if let Err(error) = output(&mut wait) {
            let conditions = output(target.kubectl().args([
                "get",
                object,
                "-o",
                "jsonpath={range .status.conditions[*]}{.type}={.status} {.reason} {.message}{\"\\n\"}{end}",
            ]))?;
            return Err(format!("{object}: {error}\n{conditions}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::contents::PACKAGES;

    #[test]
    fn the_local_provider_takes_its_emulator_from_every_namespace() {
        let config = beside_emulator("http://10.0.0.7:4566");
        let container =
            &config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["name"], "package-runtime");
        let expected = serde_json::json!(["--allowed-endpoints=http://10.0.0.7:4566"]);
        assert_eq!(container["args"], expected);
        let name = config["metadata"]["name"].as_str().unwrap();
        let tests = crate::root().join("tests/e2e/environment/runtime.py");
        let tests = std::fs::read_to_string(tests).unwrap();
        assert!(tests.contains(&format!("DEFAULT = \"{name}\"")));
    }

    /// A package that the registry cannot serve whole.
    fn lacking(name: &str, missing: &[&str]) -> Built {
        let mut packages = PACKAGES.iter();
        Built {
            package: packages.find(|package| package.name == name).unwrap(),
            files: Vec::new(),
            tag: "v0.1.0".into(),
            missing: missing.iter().map(|&one| one.to_owned()).collect(),
        }
    }

    #[test]
    fn a_reader_learns_which_package_is_not_installed_and_what_it_lacks() {
        let addition = "configuration-gpu-workspaces-provider-aws";
        let reason = left_out(&lacking(addition, &["upbound/provider-aws-ec2"])).unwrap();
        assert_eq!(
            reason.unwrap(),
            format!("{addition} is not installed: the registry lacks upbound/provider-aws-ec2")
        );
        assert_eq!(left_out(&lacking(addition, &[])).unwrap(), None);
    }

    #[test]
    fn a_platform_without_a_necessary_package_is_not_installed() {
        let package = lacking("configuration-gpu-workspaces", &["acme/other"]);
        let error = left_out(&package).unwrap_err().to_string();
        assert!(error.contains("lacks acme/other"), "{error}");
    }
}
