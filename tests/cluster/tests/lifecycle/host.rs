//! Observes the host: what a cluster could leave on it, and processes.

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

/// Kernel settings that a Kubernetes node changes for the whole machine.
const KERNEL_SETTINGS: &[&str] = &[
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

/// How the interfaces of the emulator's own tests begin: their machines have addresses in 10.246.0.0/16,
/// and no cluster has. The machines of a cluster's emulator have no interface on the host.
pub(crate) const INTERFACES_OF_EMULATOR_TESTS: &str = "ec2-0af6";

/// Names of interfaces and cgroups of other clusters. Such clusters start and end on a developer's
/// machine while the test runs.
pub(crate) struct Others(Vec<String>);

impl Others {
    /// The names of the clusters `demo` and `test`, which may start at any time, and the names that
    /// exist already.
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

/// The state of the host, as lines. Each line begins with its source.
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
        let all = all.filter(|line| !foreign(line) && !is_of_emulator_tests(line));
        Self(all.collect())
    }

    /// This snapshot without what a running cluster may have on the host.
    pub(crate) fn outside(mut self, cluster: &Cluster) -> Self {
        let allowed = [cluster.addresses().interface(), cluster.cgroup()];
        self.0
            .retain(|line| !allowed.iter().any(|name| line.contains(name.as_str())));
        self
    }

    /// The lines that were added (+) and removed (-) since `before`.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let came = self.0.difference(&before.0).map(|line| format!("+ {line}"));
        let went = before.0.difference(&self.0).map(|line| format!("- {line}"));
        came.chain(went).collect()
    }
}

/// Whether a line is an interface, a route or a cgroup of an EC2 emulator that runs outside clusters. The
/// emulator's own tests begin and end such machines at any time. An emulator that a cluster leaves behind
/// is seen by the cluster's cgroup.
fn is_of_emulator_tests(line: &str) -> bool {
    let group = line
        .split('/')
        .find_map(|part| part.strip_prefix("ec2-emulator-"));
    group.is_some_and(|pid| Path::new("/proc").join(pid).exists())
        || line.contains(INTERFACES_OF_EMULATOR_TESTS)
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

/// Adds the path, if it exists, and everything below it.
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

/// A process. Process numbers are reused, so its start time identifies it as well.
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

/// The processes below the cgroup of that name, including those of containers.
pub(crate) fn processes_in(cgroup: &str) -> Vec<Process> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i64| read(&format!("/proc/{pid}/cgroup")).contains(&format!("/{cgroup}/")))
        .filter_map(Process::of)
        .collect()
}

/// Sends the signal of Ctrl-C to the process group of that leader, as a terminal does.
pub(crate) fn interrupt(leader: u32) {
    output("kill", &["-INT", "--", &format!("-{leader}")]);
}

pub(crate) fn kill(pid: i64) {
    output("kill", &["-KILL", &pid.to_string()]);
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}
