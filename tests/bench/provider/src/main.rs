//! `make bench-provider`: the real provider manages a thousand pools with ten thousand instances.
//! The provider works against a real API server and the in-memory EC2, which is behind HTTP and has
//! AWS's token buckets. For comparison, the benchmark simulates a naive provider that does the same
//! work.
//!
//! [`phases`] says what is measured, [`bars`] what is promised.

mod account;
mod bars;
mod endpoint;
mod ends;
mod figures;
mod naive;
mod phases;
mod pools;
mod process;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use local_cluster::cache::Cache;
use local_cluster::control_plane::ControlPlane;
use local_cluster::progress::Progress;

use crate::account::Account;
use crate::bars::Bar;
use crate::figures::{Figures, percentiles};
use crate::phases::Scene;
use crate::pools::Times;
use crate::process::Provider;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PROVIDER: &str = "provider-gpu-spot";

/// Measure the provider with many pools
#[derive(Parser)]
struct Arguments {
    /// Measure this program instead of building it
    #[arg(long)]
    provider: Option<PathBuf>,
    /// How many pools
    #[arg(long, env = "POOLS", default_value_t = 1000)]
    pools: usize,
    /// How many instances all of them have
    #[arg(long, env = "INSTANCES", default_value_t = 10_000)]
    instances: usize,
    /// How long it is watched at rest, in seconds; a pool is looked at every minute
    #[arg(long, env = "REST", default_value_t = 150)]
    rest: u64,
    /// How many instances AWS takes back
    #[arg(long, env = "INTERRUPTIONS", default_value_t = 60)]
    interruptions: usize,
    /// How many instances end in one minute, because the time of their pools is over
    #[arg(long, env = "ENDS", default_value_t = 1000)]
    ends: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the provider and prints the figures. Returns whether every promise is kept.
fn run(arguments: &Arguments) -> Outcome<bool> {
    let root = root();
    let folder = target(&root).join("bench-provider");
    fs::create_dir_all(&folder)?;
    let progress = Progress::to_stderr();
    let program = match &arguments.provider {
        Some(program) => program.clone(),
        None => compile(&root, &progress)?,
    };
    let cache = Cache::from_environment()?;
    let control_plane = ControlPlane::start(&cache, &folder.join("api-server"), &[], &progress)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = measure(&control_plane, &folder, &program, arguments);
    let figures = runtime.block_on(measured)?;
    let bars = bars::of(&figures);
    print!("\n{}", figures.table());
    for missed in bars.iter().filter_map(Bar::missed) {
        println!("{missed}");
    }
    println!("\n{}", bars::summary(&bars));
    Ok(bars.iter().all(Bar::met))
}

async fn measure(
    control_plane: &ControlPlane,
    folder: &Path,
    program: &Path,
    arguments: &Arguments,
) -> Outcome<Figures> {
    // Two dependencies enable a cryptography provider of rustls each, so rustls chooses neither.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig())?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let client = Client::try_from(config)?;
    let account = Arc::new(Account::new());
    let endpoint = format!("http://{}", endpoint::serve(account.clone()).await?);
    pools::install(&client, &root(), &endpoint).await?;

    let log = folder.join("provider.log");
    let scene = Scene {
        account,
        provider: Provider::start(program, control_plane.kubeconfig(), log).await?,
        times: Times::default(),
    };
    scene.times.follow(client.clone());
    let sizes = sizes(arguments.pools, arguments.instances);
    let begun = Instant::now();
    let creating = pools::create_all(&client, sizes.clone(), &scene.times);
    let filling = phases::fill(&scene, arguments.pools, begun);
    let ((), fill) = tokio::try_join!(creating, filling)?;
    phases::settle(&scene).await?;
    let console_calls = scene.account.lock().ledger.of(figures::CONSOLE);
    let rest = phases::rest(&scene, Duration::from_secs(arguments.rest)).await?;
    let replaced = phases::interrupt(&scene, arguments.interruptions).await?;
    let late = ends::measure(&scene, &client, arguments.ends).await?;
    Ok(Figures {
        pools: arguments.pools,
        instances: arguments.instances,
        to_capacity: percentiles(scene.times.to_capacity()),
        fill,
        console_instances: sizes.iter().step_by(pools::CONSOLE_EACH).sum(),
        console_calls,
        rest,
        interruptions: replaced.len(),
        replaced: percentiles(replaced),
        ends: late.len(),
        latest: late.iter().max().map_or(f64::NAN, Duration::as_secs_f64),
        late: percentiles(late),
        naive: naive::run(&sizes),
    })
}

/// Distributes the instances over the pools as evenly as possible.
fn sizes(pools: usize, instances: usize) -> Vec<usize> {
    (0..pools)
        .map(|number| instances / pools + usize::from(number < instances % pools))
        .collect()
}

/// Builds the provider with optimisation and static linking, as for its image.
fn compile(root: &Path, progress: &Progress) -> Outcome<PathBuf> {
    let step = progress.begin("compile the provider");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root)
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("xtask/static-rustc"))
        .args([
            "build",
            "--quiet",
            "--release",
            "--workspace",
            "--bin",
            PROVIDER,
        ]);
    let status = cargo.status().map_err(|e| format!("{cargo:?}: {e}"))?;
    if !status.success() {
        return Err(format!("{cargo:?}: {status}").into());
    }
    step.end("");
    Ok(target(root).join("release").join(PROVIDER))
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(3).map(PathBuf::from);
    root.unwrap_or(manifest)
}
