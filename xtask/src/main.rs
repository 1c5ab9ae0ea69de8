//! Development commands: code generation, the local cluster, packages, the demo.
//!
//! This file only dispatches. Each command has a file of its own, and calls the crate that does the
//! work.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agent;
mod bastion;
mod build;
mod cargo;
mod cluster;
mod codegen;
mod compatibility;
mod demo;
mod imports;
mod licences;
mod oci;
mod package;
mod planted;
mod portal;
mod process;
mod python;
mod release;
mod standalone;
mod target;
mod test_all;
mod workspace_image;

#[derive(Parser)]
#[command(name = "cargo xtask", version, about = "Development commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build everything that the demo and the tests need, side by side
    Build,
    /// A local Kubernetes with Crossplane, without Docker
    Cluster(cluster::Arguments),
    /// Write XRDs, CRDs and the function input's schema from the types
    Codegen(codegen::Arguments),
    /// Compare the API with the last release's
    Compatibility(compatibility::Arguments),
    /// Build, push and install the Crossplane packages
    Package(package::Arguments),
    /// Write the agent of workspaces as a static program; prints its digest
    Agent(standalone::Arguments),
    /// Write devctl as a static program; prints its digest
    Devctl(standalone::Arguments),
    /// Build and push the images that workspaces run in
    Image(workspace_image::Arguments),
    /// Everything up, the packages in, the examples applied
    Demo(demo::Arguments),
    /// Run an end-to-end suite against a local cluster
    E2e(python::Suite),
    /// Run what contributors and CI run, in a quarter of an hour
    Test,
    /// Run every suite that did not pass at this commit yet
    TestAll(test_all::Arguments),
    /// Plant known defects in a clone, and see the simulations find each of them
    Planted(planted::Arguments),
    /// Check that no modules of a crate import each other in a ring
    Imports,
    /// Check that every dependency's licence is one that we may ship
    Licences,
    /// Prepare a release: its changelog, versions and frozen API
    Release(release::Arguments),
    /// Run Python in the locked environment
    Python(python::Arguments),
}

fn main() -> ExitCode {
    let called = std::env::var("CARGO_MANIFEST_DIR").ok();
    if let Err(e) = compiled_here(called.as_deref(), env!("CARGO_MANIFEST_DIR")) {
        eprintln!("error: {e}");
        return ExitCode::FAILURE;
    }
    match Arguments::parse().command {
        Command::Build => build::run(),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Codegen(arguments) => codegen::run(&arguments),
        Command::Compatibility(arguments) => compatibility::run(&arguments),
        Command::Package(arguments) => package::run(arguments),
        Command::Agent(arguments) => standalone::run(agent::PROGRAM, &arguments),
        Command::Devctl(arguments) => standalone::run("devctl", &arguments),
        Command::Image(arguments) => workspace_image::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::E2e(suite) => python::suite(&suite),
        Command::Test => test_all::run_quick(),
        Command::TestAll(arguments) => test_all::run(&arguments),
        Command::Planted(arguments) => planted::run(&arguments),
        Command::Imports => imports::run(),
        Command::Licences => licences::run(),
        Command::Release(arguments) => release::run(&arguments),
        Command::Python(arguments) => python::run(&arguments),
    }
}

/// Fails if another checkout compiled this program.
///
/// Cargo compiles a file again only if the file is younger than the compiled output. If a second
/// checkout has used the same target folder, Cargo takes the older files of the first checkout for
/// compiled. Programs then contain the paths and the code of the second checkout.
fn compiled_here(called: Option<&str>, compiled: &str) -> Result<(), String> {
    match called {
        Some(called) if called != compiled => Err(format!(
            "xtask is called in {called}, but Cargo compiled it in {compiled}: two checkouts \
             share a target folder. Set CARGO_TARGET_DIR to a folder of this one's own, or make \
             its files young: git ls-files -z | xargs -0 touch"
        )),
        _ => Ok(()),
    }
}

/// The root of the checkout that `cargo xtask` was called in.
fn root() -> PathBuf {
    let called = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest = called.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

#[cfg(test)]
mod tests {
    use super::compiled_here;

    #[test]
    fn a_program_that_another_checkout_compiled_says_so() {
        let error = compiled_here(Some("/one/xtask"), "/two/xtask").unwrap_err();
        assert!(error.contains("/two/xtask") && error.contains("CARGO_TARGET_DIR"));
        assert_eq!(compiled_here(Some("/one/xtask"), "/one/xtask"), Ok(()));
        assert_eq!(compiled_here(None, "/one/xtask"), Ok(()));
    }
}
