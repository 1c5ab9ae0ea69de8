//! Crossplane: its image and chart, made once from the source of the pinned version, and its
//! installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::binaries::{self, Binaries};
use crate::cache::{self, Cache, key};
use crate::command;
use crate::helm;
use crate::images;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::sources;

/// The host's file of certificate authorities, which is copied into Crossplane's image.
pub const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The namespace that Crossplane's chart expects.
pub const NAMESPACE: &str = "crossplane-system";
/// The version of the recipe. Raise it with each change of how the files are made.
const RECIPE: &str = "1";
const BINARY: &str = "crossplane-core";

/// What can go wrong while the chart and the image are made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The source cannot be found.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// A part of the source cannot be copied.
    #[error(transparent)]
    Sources(#[from] sources::Error),
    /// A program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
}

/// The files that are made from Crossplane's source.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
    /// The version, such as `v2.4.0`.
    pub version: String,
}

impl Files {
    /// The chart's folder.
    pub fn chart(&self) -> PathBuf {
        self.folder.join("chart")
    }

    /// The image's only layer.
    pub fn layer(&self) -> PathBuf {
        self.folder.join("layer.tar.gz")
    }
}

/// Makes the chart and the image's layer, unless the cache has them.
pub fn ensure(cache: &Cache, binaries: &Binaries, progress: &Progress) -> Result<Files, Error> {
    let version = binaries::version(BINARY)?;
    let binary = binaries.path(BINARY)?;
    let key = key([
        ("binary", binary.as_os_str().as_encoded_bytes()),
        ("recipe", RECIPE.as_bytes()),
    ]);
    let folder = cache.entry("crossplane", "files", &key);
    let files = Files { folder, version };
    let step = progress.begin("chart and image of Crossplane");
    let _lock = cache.lock("crossplane", |lock| {
        step.note(&format!("waiting for another build ({})", lock.display()));
    })?;
    if files.folder.exists() {
        step.end("cached");
        return Ok(files);
    }
    let source = binaries::source(BINARY)?.join("cluster");
    cache::publish(&files.folder, |folder| {
        make(&source, binary, &files.version, folder)
    })?;
    step.end("built");
    Ok(files)
}

fn make(source: &Path, binary: &Path, version: &str, folder: &Path) -> Result<(), Error> {
    let chart = folder.join("chart");
    sources::copy(&source.join("charts/crossplane"), &chart)?;
    let about = chart.join("Chart.yaml");
    cache::write(&about, released(&cache::read(&about)?, version))?;

    // The image has the same layout as the image of Crossplane's own build.
    let root = folder.join("root");
    cache::create_folder(&root.join("bin"))?;
    cache::create_folder(&root.join("etc/ssl/certs"))?;
    sources::copy(&source.join("crds"), &root.join("crds"))?;
    sources::copy(
        &source.join("webhookconfigurations"),
        &root.join("webhookconfigurations"),
    )?;
    sources::copy(binary, &root.join("bin/crossplane"))?;
    sources::copy(
        Path::new(AUTHORITIES),
        &root.join("etc/ssl/certs/ca-certificates.crt"),
    )?;
    images::pack(&root, &folder.join("layer.tar.gz"))?;
    Ok(fs::remove_dir_all(&root).map_err(cache::Error::io("remove", &root))?)
}

/// Fills in the chart's versions, which are placeholders in the source tree.
fn released(chart: &str, version: &str) -> String {
    let number = version.trim_start_matches('v');
    chart
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((field @ ("version" | "appVersion"), _)) => format!("{field}: {number}\n"),
            _ => format!("{line}\n"),
        })
        .collect()
}

/// The repository of Crossplane's image in the cluster's registry.
pub fn repository(layout: &Layout) -> String {
    format!("{}/crossplane/crossplane", layout.addresses.registry())
}

/// Pushes Crossplane's image.
pub fn push_image(layout: &Layout, files: &Files) -> Result<(), command::Error> {
    images::push(
        &layout.program("crane"),
        &images::Image {
            reference: &format!("{}:{}", repository(layout), files.version),
            layers: &[files.layer()],
            entrypoint: "/bin/crossplane",
            environment: &["PATH=/bin"],
            user: None,
        },
    )
}

/// The command that installs Crossplane. It ends when Crossplane's pods are ready.
pub fn installation(layout: &Layout, files: &Files) -> Result<Command, cache::Error> {
    let values = layout.state.configuration().join("crossplane-values.json");
    cache::write(&values, format!("{:#}\n", chart_values(layout, files)))?;
    let mut helm = helm::call(&layout.program("helm"), &layout.state);
    helm.args(["install", "crossplane"])
        .arg(files.chart())
        .args(["--namespace", NAMESPACE, "--create-namespace", "--values"])
        .arg(values)
        // The caller's time limit is shorter, and its error says what the caller saw.
        .args(["--wait", "--timeout", "10m"]);
    Ok(helm)
}

fn chart_values(layout: &Layout, files: &Files) -> serde_json::Value {
    // The chart's limits of half a processor and less are meant for shared clusters. Here they
    // would only delay the start. Its requests stay: Linux gives a pod with a smaller one hardly any
    // processor time beside a hundred busy workspaces.
    let unlimited = json!({"limits": {"cpu": null}});
    json!({
        // docs/cluster.md and docs/operate.md advise these values.
        "args": [
            "--circuit-breaker-burst=400",
            "--circuit-breaker-refill-rate=4",
            "--max-concurrent-reconciles=8",
        ],
        "image": {"repository": repository(layout), "tag": files.version},
        "resourcesCrossplane": unlimited,
        "resourcesRBACManager": unlimited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_claims_the_version_that_it_installs() {
        let source = "apiVersion: v1\nappVersion: 0.0.1\nname: crossplane\nversion: 0.0.1\n";
        assert_eq!(
            released(source, "v2.4.0"),
            "apiVersion: v1\nappVersion: 2.4.0\nname: crossplane\nversion: 2.4.0\n"
        );
    }
}
