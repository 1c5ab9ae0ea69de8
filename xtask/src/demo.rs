//! `cargo xtask demo`: starts a local cluster, installs the packages, applies the examples, waits
//! for a workspace and, on a local cluster, logs in to it.

mod bastion;
mod login;
mod policy;
mod portal;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::{Differences, interrupt};
use serde_json::{Value, json};

use crate::package::{self, Composites};
use crate::process::output;
use crate::target::{Resolved, Target};
use crate::{build, cluster};

use bastion::Bastion;
use login::Login;
use portal::Portal;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The claim that the demo waits for.
const CLAIM: &str = "gpudevworkspaceclaims.platform.acme.io/alice-vision";
const NAMESPACE: &str = "team-vision";
/// The Secret with the emulator's credentials.
const SECRET: &str = "aws-credentials";

/// The time limit of a workspace: its machine boots, installs its software, and EC2 shows the
/// machine's console.
const PATIENCE: Duration = Duration::from_mins(10);
const LOOK: Duration = Duration::from_millis(500);

/// The manifests of `examples/platform` for every cluster.
const PLATFORM: [&str; 7] = [
    "namespaces.yaml",
    "catalogue.yaml",
    "limits.yaml",
    "admission.yaml",
    "crossplane-network.yaml",
    "cluster-rbac.yaml",
    "owner-binding.yaml",
];

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    composites: Composites,
    /// Install the packages and the platform's configuration, apply no claim
    #[arg(long)]
    platform_only: bool,
    /// What to show as well, on a local cluster
    #[arg(long, value_enum, conflicts_with_all = ["current", "platform_only"])]
    with: Option<With>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum With {
    /// The bastion: a person without a credential of the cluster makes a workspace through it
    Bastion,
    /// The portal: a person signs in with a browser and makes workspaces there
    Portal,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match start(arguments, &Progress::to_stderr()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo. Starts the local cluster unless it is up. If Ctrl-C ends the demo, a cluster that
/// did not exist before is removed.
fn start(arguments: &Arguments, progress: &Progress) -> Outcome<()> {
    if arguments.target.current {
        return demo(arguments, progress);
    }
    let (cache, name) = (Cache::from_environment()?, &arguments.target.name);
    cluster::undone_by_interrupt(&cache, name, progress, || {
        build::everything(progress)?;
        let differences = Differences {
            identities: arguments.with == Some(With::Portal),
            ..Differences::default()
        };
        cluster::up(&cache, name, differences, progress)?;
        demo(arguments, progress)
    })
}

fn demo(arguments: &Arguments, progress: &Progress) -> Outcome<()> {
    let target = arguments.target.resolve()?;
    package::install(&target, arguments.composites, progress)?;
    configure(&target, arguments.composites, progress)?;
    if arguments.platform_only {
        return Ok(());
    }
    // The emulator of a cluster that is not local has no machines to log in to.
    let login = if arguments.target.current {
        None
    } else {
        Some(Login::prepare(&arguments.target.name, &target, progress)?)
    };
    if let (Some(login), Some(With::Portal)) = (&login, arguments.with) {
        Portal::check(login)?;
    }
    let step = progress.begin("apply examples/workspaces");
    target.apply_file("examples/workspaces")?;
    if let Some(login) = &login {
        login.admit_host(&target)?;
    }
    step.end("");
    if let Some(login) = &login {
        login.install_devctl(progress)?;
    }
    await_ready(&target, progress)?;
    let logged_in = match &login {
        Some(login) => Some(login.log_in(&target, progress)?),
        None => None,
    };
    let through = match (&login, arguments.with) {
        (Some(login), Some(With::Bastion)) => {
            let bastion = Bastion::install(&target, login, progress)?;
            let printed = bastion.work(progress)?;
            Some((bastion, printed))
        }
        _ => None,
    };
    let portal = match (&login, arguments.with) {
        (Some(login), Some(With::Portal)) => Some(Portal::install(&target, login, progress)?),
        _ => None,
    };
    let key = login.as_ref().map(Login::key);
    show(&target, arguments, logged_in, key.as_deref())?;
    if let Some((bastion, printed)) = through {
        bastion.show(&printed);
    }
    if let Some(portal) = portal {
        portal.show();
    }
    if !arguments.target.current {
        println!("\nEnd all of it: {}", end(&arguments.target.name));
    }
    Ok(())
}

/// Applies the objects of the platform team: namespaces, the catalogue, RBAC, credentials.
fn configure(target: &Resolved, composites: Composites, progress: &Progress) -> Outcome<()> {
    let step = progress.begin("apply examples/platform");
    for file in PLATFORM {
        target.apply_file(&format!("examples/platform/{file}"))?;
    }
    if composites.namespaced {
        target.apply_file("examples/namespaced")?;
    }
    match &target.emulator {
        Some(endpoint) => {
            for object in emulator_access(endpoint) {
                target.apply_text(&object.to_string())?;
            }
        }
        None => target.apply_file("examples/platform/provider-config.yaml")?,
    }
    let workspaces = format!("xrd/{}", composites.xrd());
    output(target.kubectl().args([
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        &workspaces,
        "xrd/workspaceflavors.platform.acme.io",
        "xrd/devusers.platform.acme.io",
    ]))?;
    if !composites.namespaced {
        // Crossplane sets the condition Offered only on XRDs with claims.
        output(target.kubectl().args([
            "wait",
            "--for=condition=Offered",
            "--timeout=60s",
            &workspaces,
        ]))?;
    }
    step.end("");
    Ok(())
}

/// The credentials and the `ClusterProviderConfig` for the emulator. The emulator accepts any
/// credentials. Those of the environment are used if there are any, so that the same command works
/// with another endpoint.
fn emulator_access(endpoint: &str) -> [serde_json::Value; 2] {
    let or_test = |key: &str| std::env::var(key).unwrap_or_else(|_| "test".into());
    let profile = format!(
        "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
        or_test("AWS_ACCESS_KEY_ID"),
        or_test("AWS_SECRET_ACCESS_KEY"),
    );
    let namespace = "crossplane-system";
    [
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": namespace},
            "stringData": {"credentials": profile},
        }),
        json!({
            "apiVersion": "gpu.platform.acme.io/v1alpha1",
            "kind": "ClusterProviderConfig",
            "metadata": {"name": "default"},
            "spec": {
                "credentials": {
                    "source": "Secret",
                    "secretRef": {"namespace": namespace, "name": SECRET, "key": "credentials"},
                },
                "endpoint": {"url": {"type": "Static", "static": endpoint}},
            },
        }),
    ]
}

/// Waits until the claim is Ready, and prints what it waits for.
fn await_ready(target: &Resolved, progress: &Progress) -> Outcome<()> {
    let began = Instant::now();
    let step = progress.begin("wait for the workspace");
    let mut shown = String::new();
    loop {
        let claim: Value = serde_json::from_str(&claim(target, "json")?)?;
        if is_ready(&claim) {
            break;
        }
        let status = &claim["status"];
        let said = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let news = format!("  {}: {}", said("phase"), said("message"));
        if news != shown && status["phase"].is_string() {
            step.note(&news);
            shown = news;
        }
        if interrupt::requested() {
            return Err("interrupted".into());
        }
        if began.elapsed() > PATIENCE {
            let described = output(target.kubectl().args(["describe", "-n", NAMESPACE, CLAIM]))?;
            return Err(format!("{CLAIM} is not Ready after {PATIENCE:?}\n{described}").into());
        }
        std::thread::sleep(LOOK);
    }
    step.end(&format!(
        "ready after {:.1} s",
        began.elapsed().as_secs_f32()
    ));
    Ok(())
}

fn is_ready(claim: &Value) -> bool {
    let conditions = claim["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    })
}

/// The claim in a form that `kubectl get -o` knows.
fn claim(target: &Resolved, form: &str) -> Outcome<String> {
    let mut get = target.kubectl();
    output(get.args(["get", "-n", NAMESPACE, CLAIM, "-o", form]))
}

fn show(
    target: &Resolved,
    arguments: &Arguments,
    logged_in: Option<(String, String)>,
    key: Option<&Path>,
) -> Outcome<()> {
    let table = output(target.kubectl().args([
        "get",
        "-n",
        NAMESPACE,
        "gpudevworkspaceclaims.platform.acme.io",
    ]))?;
    let ssh = claim(target, "jsonpath={.status.ssh}")?;
    println!("\n{table}\n");
    match logged_in {
        Some((command, printed)) => println!(
            "  {command}\n\nIn it, OpenCV and PyTorch multiplied two tensors. They said: {printed}\n"
        ),
        None => println!("  {ssh}\n"),
    }
    println!("Try next:");
    if let Some(key) = key {
        let name = &arguments.target.name;
        println!(
            "  eval \"$(cargo xtask cluster env --name {name})\"    # devctl, kubectl and more, for it"
        );
        println!(
            "  export DEVCTL_NAMESPACE={NAMESPACE} DEVCTL_IDENTITY={}",
            key.display()
        );
        println!("  devctl list");
        println!("  devctl why alice-vision");
        println!("  devctl ssh alice-vision");
        println!("  devctl delete alice-vision    # its machine goes with it");
    } else {
        println!("  kubectl describe -n {NAMESPACE} gpuws alice-vision");
        println!(
            "  kubectl delete -n {NAMESPACE} gpuws alice-vision    # its machine goes with it"
        );
    }
    println!("  crossplane resource trace -n {NAMESPACE} gpuws alice-vision");
    println!("  kubectl get -n {NAMESPACE} spotpools");
    println!("  aws ec2 describe-instances    # the emulator's");
    Ok(())
}

/// The command that ends the demo.
fn end(name: &str) -> String {
    match name {
        "demo" => "make demo-down".to_owned(),
        other => format!("cargo xtask cluster down --name {other}"),
    }
}
