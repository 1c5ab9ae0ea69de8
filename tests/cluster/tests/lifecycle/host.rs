//! The host, as far as a cluster could leave something on it.

use std::collections::BTreeSet;
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

/// Other people's clusters, which come and go on a developer's machine.
pub(crate) struct Others(Vec<String>);

impl Others {
    /// `demo` and `test`, whenever they come, and what is there already.
    pub(crate) fn now() -> Self {
        let mut names: Vec<String> = ["gws0", "gws1", "gpu-workspaces-0", "gpu-workspaces-1"]
            .map(str::to_owned)
            .to_vec();
        let hierarchies = list("/sys/fs/cgroup").into_iter();
        let cgroups = hierarchies.flat_map(|name| list(&format!("/sys/fs/cgroup/{name}")));
        let found = cgroups
            .chain(list("/sys/fs/cgroup"))
            .chain(list("/sys/class/net"));
        names.extend(
            found.filter(|name| name.starts_with("gpu-workspaces-") || name.starts_with("gws")),
        );
        names.sort();
        names.dedup();
        Self(names)
    }
}

/// What the host looks like, line by line, each with where it comes from.
#[derive(Debug)]
pub(crate) struct Snapshot(BTreeSet<String>);

impl Snapshot {
    pub(crate) fn take(others: &Others) -> Self {
        let mut cgroups = Vec::new();
        list_below(Path::new("/sys/fs/cgroup"), &mut cgroups);
        cgroups.retain(|path| Path::new(path).is_dir());
        let settings = KERNEL_SETTINGS
            .iter()
            .map(|name| format!("{name} = {}", read(&format!("/proc/sys/{name}"))));
        let mut places = Vec::new();
        for place in PLACES {
            list_below(Path::new(place), &mut places);
        }
        let lines = [
            ("link", lines(&output("ip", &["-brief", "link"]))),
            ("route", lines(&output("ip", &["route"]))),
            ("nft", lines(&output("nft", &["list", "ruleset"]))),
            ("mount", lines(&read("/proc/self/mountinfo"))),
            ("cgroup", cgroups),
            ("setting", settings.collect()),
            ("place", places),
        ];
        let all = lines.into_iter().flat_map(|(source, lines)| {
            lines
                .into_iter()
                .map(move |line| format!("{source}: {line}"))
        });
        let foreign = |line: &String| others.0.iter().any(|name| line.contains(name.as_str()));
        Self(all.filter(|line| !foreign(line)).collect())
    }

    /// Without what a running cluster is allowed to have on the host.
    pub(crate) fn outside(mut self, cluster: &Cluster) -> Self {
        let allowed = [cluster.addresses().interface(), cluster.cgroup()];
        self.0
            .retain(|line| !allowed.iter().any(|name| line.contains(name.as_str())));
        self
    }

    /// What came (+) and what went (-) since `before`.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let came = self.0.difference(&before.0).map(|line| format!("+ {line}"));
        let went = before.0.difference(&self.0).map(|line| format!("- {line}"));
        came.chain(went).collect()
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn list(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Everything below the folder, and the folder itself if it is there.
fn list_below(path: &Path, found: &mut Vec<String>) {
    let Ok(about) = path.symlink_metadata() else {
        return;
    };
    found.push(path.display().to_string());
    if about.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            list_below(&entry.path(), found);
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

/// Ctrl-C on a terminal, for the process group of that leader.
pub(crate) fn interrupt(leader: u32) {
    output("kill", &["-INT", "--", &format!("-{leader}")]);
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
