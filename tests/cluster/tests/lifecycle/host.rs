//! The host, as far as a cluster could leave something on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use local_cluster::Cluster;

/// Places of the host where a Kubernetes node usually writes.
const PLACES: &[&str] = &[
    "/etc/cni",
    "/opt/cni",
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

/// What the kubelet would change for the whole machine.
const KERNEL_SETTINGS: &[&str] = &[
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

/// What the host looks like: lines by where they come from.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot(BTreeMap<&'static str, Vec<String>>);

impl Snapshot {
    pub(crate) fn take() -> Self {
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let mut cgroups = Vec::new();
        list_folders(Path::new("/sys/fs/cgroup"), &mut cgroups);
        let settings = KERNEL_SETTINGS
            .iter()
            .map(|name| format!("{name}: {}", read(&format!("/proc/sys/{name}"))))
            .collect();
        let places = PLACES
            .iter()
            .map(|place| format!("{place}: {}", Path::new(place).exists()))
            .collect();
        let mut found = BTreeMap::from([
            ("links", lines(output("ip", &["-brief", "link"]))),
            ("routes", lines(output("ip", &["route"]))),
            ("rules", lines(output("nft", &["list", "ruleset"]))),
            ("mounts", lines(read("/proc/self/mountinfo"))),
            ("cgroups", cgroups),
            ("settings", settings),
            ("places", places),
        ]);
        // Clusters of other names come and go on a developer's machine.
        for lines in found.values_mut() {
            lines.retain(|line| !line.contains("gpu-workspaces-") || line.contains("-lifecycle"));
            lines.retain(|line| !["gws0", "gws1"].iter().any(|other| line.contains(other)));
            lines.sort();
        }
        Self(found)
    }

    /// Without what a running cluster is allowed to have on the host.
    pub(crate) fn outside(&self, cluster: &Cluster) -> Self {
        let interface = cluster.addresses().interface();
        let cgroup = cluster.cgroup();
        let foreign = |line: &&String| !line.contains(&interface) && !line.contains(&cgroup);
        Self(
            self.0
                .iter()
                .map(|(source, lines)| (*source, lines.iter().filter(foreign).cloned().collect()))
                .collect(),
        )
    }
}

fn list_folders(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path().display().to_string());
            list_folders(&entry.path(), found);
        }
    }
}

/// A process, with its start time: numbers are used again.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i64,
    started: String,
}

impl Process {
    fn of(pid: i64) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let started = stat.rsplit(')').next()?.split_whitespace().nth(19)?;
        Some(Self {
            pid,
            started: started.to_owned(),
        })
    }

    pub(crate) fn runs(&self) -> bool {
        Self::of(self.pid).is_some_and(|other| other.started == self.started)
    }
}

pub(crate) fn runs(pid: i64) -> bool {
    Process::of(pid).is_some()
}

/// The processes below the cgroup of that name, containers' included.
pub(crate) fn processes_in(cgroup: &str) -> Vec<Process> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i64| read(&format!("/proc/{pid}/cgroup")).contains(&format!("/{cgroup}/")))
        .filter_map(Process::of)
        .collect()
}

pub(crate) fn kill(pid: i64) {
    output("kill", &["-KILL", &pid.to_string()]);
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}
