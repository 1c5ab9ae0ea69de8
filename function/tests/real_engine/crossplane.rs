//! `crossplane composition render`: one reconcile by Crossplane's own engine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::binaries::{self, Binaries};
use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::simulation::engine::{Call, Engine, Rendered};
use crate::simulation::manifest::{self, KEY, text};

const FUNCTION: &str = "acme-function-gpu-workspace";
/// The Composition and the XRD of composites with claims.
const WITH_CLAIMS: (&str, &str) = (
    "compositions/gpudevworkspaces.yaml",
    "xrds/gpudevworkspaces.platform.acme.io.yaml",
);
/// The Composition and the XRD of composites without claims.
const NAMESPACED: (&str, &str) = (
    "compositions/namespaced/gpudevworkspaceclaims.yaml",
    "xrds/namespaced/gpudevworkspaceclaims.platform.acme.io.yaml",
);
/// The text that Crossplane puts before the message of a function's event.
const STEP: &str = "Pipeline step \"workspace\": ";
/// The reasons of the events that Crossplane itself writes at every reconcile.
const OWN_EVENTS: [&str; 2] = ["ComposeResources", "SelectComposition"];

/// The CLI, Crossplane's core and the address of a running function.
pub struct Crossplane {
    binaries: Binaries,
    folder: PathBuf,
}

/// Finds the CLI and the core, or builds them from source. The build takes minutes, once.
pub fn build() -> Binaries {
    let names = ["crossplane", "crossplane-core"];
    let built = Cache::from_environment()
        .map_err(binaries::Error::from)
        .and_then(|cache| binaries::ensure(&cache, &names, &Progress::to_stderr()));
    built.unwrap_or_else(|error| panic!("no Crossplane: {error}\nis Go installed?"))
}

impl Crossplane {
    /// Renders with the function at this address, and writes its files to a folder of this name.
    pub fn new(binaries: Binaries, function: SocketAddr, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let crossplane = Self { binaries, folder };
        let function = json!({
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Function",
            "metadata": {"name": FUNCTION, "annotations": {
                "render.crossplane.io/runtime": "Development",
                "render.crossplane.io/runtime-development-target": function.to_string(),
            }},
            "spec": {"package": format!("registry.platform.acme.io/acme/{FUNCTION}:v0")},
        });
        crossplane.write("function.yaml", &[function]);
        crossplane
    }

    fn write(&self, name: &str, documents: &[Value]) -> PathBuf {
        let path = self.folder.join(name);
        let written = documents.iter().map(|document| {
            let yaml = serde_yaml::to_string(document).unwrap();
            format!("---\n{yaml}")
        });
        std::fs::write(&path, written.collect::<String>()).unwrap();
        path
    }

    fn command(&self, call: &Call<'_>) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (composition, xrd) = if text(&call.xr, "/metadata/namespace").is_some() {
            NAMESPACED
        } else {
            WITH_CLAIMS
        };
        let composition = root.join(composition);
        let composition = std::fs::read_to_string(composition).unwrap();
        let mut composition: Value = serde_yaml::from_str(&composition).unwrap();
        let step = &mut composition["spec"]["pipeline"][0];
        if call.policy.is_null() {
            manifest::remove(step, "/input");
        } else {
            step["input"] = call.policy.clone();
        }
        let observed: Vec<Value> = call.observed.values().cloned().collect();
        let flag = |name: &str, value: PathBuf| format!("--{name}={}", value.display());
        let core = self.binaries.path("crossplane-core").unwrap().to_owned();
        let xrd = root.join(xrd);
        let mut command = Command::new(self.binaries.path("crossplane").unwrap());
        command
            .args(["composition", "render"])
            .arg(self.write("composite.yaml", std::slice::from_ref(&call.xr)))
            .arg(self.write("composition.yaml", &[composition]))
            .arg(self.folder.join("function.yaml"))
            .arg(flag("crossplane-binary", core))
            .arg(flag("xrd", xrd))
            .arg("--include-function-results");
        for (name, documents) in [
            ("observed-resources", observed.as_slice()),
            ("required-resources", call.cluster.as_slice()),
        ] {
            if !documents.is_empty() {
                let file = self.write(&format!("{name}.yaml"), documents);
                command.arg(flag(name, file));
            }
        }
        command
    }
}

impl Engine for Crossplane {
    fn render(&mut self, call: &Call<'_>) -> Result<Rendered, String> {
        let ran = self.command(call).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        if !ran.status.success() {
            let is_fatal = said.contains("returned a fatal result");
            return if is_fatal { Ok(fatal(said)) } else { Err(said) };
        }
        let text = String::from_utf8(ran.stdout).unwrap();
        let documents = serde_yaml::Deserializer::from_str(&text);
        let documents = documents.map(|document| Value::deserialize(document).unwrap());
        Ok(rendered(
            documents.filter(|document| !document.is_null()).collect(),
        ))
    }
}

fn fatal(message: String) -> Rendered {
    Rendered {
        fatal: Some(message),
        desired: BTreeMap::new(),
        status: Value::Null,
        ready: false,
        conditions: Vec::new(),
        events: Vec::new(),
        ttl: 60,
        required: Vec::new(),
    }
}

fn rendered(documents: Vec<Value>) -> Rendered {
    let mut rendered = fatal(String::new());
    rendered.fatal = None;
    for document in documents {
        match text(&document, "/kind") {
            Some("GpuDevWorkspace" | "GpuDevWorkspaceClaim") => {
                let mut status: Map<String, Value> =
                    document["status"].as_object().cloned().unwrap_or_default();
                status.remove("claimConditionTypes");
                let conditions = status.remove("conditions");
                rendered.status = Value::Object(status);
                let conditions = conditions.as_ref().and_then(Value::as_array);
                for condition in conditions.into_iter().flatten() {
                    let is_true = condition["status"] == "True";
                    match condition["type"].as_str() {
                        Some("Ready") => rendered.ready = is_true,
                        Some("Synced" | "Responsive") => {}
                        _ => rendered.conditions.push(condition.clone()),
                    }
                }
            }
            Some("Result") => {
                let field = |name: &str| document[name].as_str().unwrap_or_default();
                if !OWN_EVENTS.contains(&field("reason")) {
                    let message = field("message");
                    let message = message.strip_prefix(STEP).unwrap_or(message);
                    let event = format!("{}: {message}", field("reason"));
                    rendered.events.push(event);
                }
            }
            _ => {
                let key = text(&document, KEY).unwrap_or_default().to_owned();
                rendered.desired.insert(key, document);
            }
        }
    }
    rendered
}
