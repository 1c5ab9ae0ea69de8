//! `sample`: measurements of the machine, as one line of JSON each.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};

use crate::arguments::Sample;
use crate::jobs;
use crate::places::Places;
use crate::registration::Registration;
use crate::watching;

const GPU_QUERY: [&str; 2] = [
    "--query-gpu=index,name,utilization.gpu,memory.used,memory.total",
    "--format=csv,noheader,nounits",
];

/// Prints a measurement each interval, until its reader ends.
pub fn run(places: &Places, given: &Sample) -> Result<ExitCode, String> {
    let _watching = watching(places);
    let interval = Duration::from_secs(given.interval);
    let mut before = Counters::read(places);
    let mut at = Instant::now();
    let mut count = 0;
    loop {
        thread::sleep(interval);
        let now = Counters::read(places);
        let elapsed = at.elapsed();
        at = Instant::now();
        let line = json!({
            "at": format!("{:.0}", Timestamp::now()),
            "cpuPercent": now.cpu_percent(&before, elapsed),
            "memory": memory(places),
            "shm": disk(&places.at("/dev/shm")),
            "disk": disk(&places.at(&given.home)),
            "network": now.network(&before, elapsed),
            "gpus": gpus(&given.nvidia_smi),
            "jobs": running(places),
        });
        before = now;
        let written = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
        if let Err(error) = written {
            // The reader has ended, and so has the session.
            let is_over = error.kind() == io::ErrorKind::BrokenPipe;
            return if is_over {
                Ok(ExitCode::SUCCESS)
            } else {
                Err(error.to_string())
            };
        }
        count += 1;
        if given.count == Some(count) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Registers this session as one that only watches. A session that cannot be registered counts as use.
fn watching(places: &Places) -> Option<Registration> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    match watching::register(&places.watching(), &connection) {
        Ok(registration) => Some(registration),
        Err(error) => {
            let folder = places.watching();
            eprintln!("this session counts as use: {}: {error}", folder.display());
            None
        }
    }
}

/// Counters since the start of the machine or of the container.
struct Counters {
    /// Microseconds of all processors.
    cpu: Option<u64>,
    /// Bytes received and sent.
    network: Option<(u64, u64)>,
}

impl Counters {
    fn read(places: &Places) -> Self {
        let text = |path: &str| fs::read_to_string(places.at(path)).ok();
        // A container has the counters of its own cgroup.
        let own = text("/sys/fs/cgroup/cpu.stat").filter(|_| in_container(places));
        let cpu = match own {
            Some(stat) => field(&stat, "usage_usec"),
            None => text("/proc/stat").and_then(|stat| busy(&stat)),
        };
        let network = text("/proc/net/dev").map(|table| traffic(&table));
        Self { cpu, network }
    }

    /// Percent of one processor; none if the machine does not say.
    fn cpu_percent(&self, before: &Self, elapsed: Duration) -> Option<u64> {
        let used = self.cpu?.checked_sub(before.cpu?)?;
        let elapsed = u64::try_from(elapsed.as_micros()).ok()?;
        used.saturating_mul(100).checked_div(elapsed)
    }

    /// Bytes in each second.
    fn network(&self, before: &Self, elapsed: Duration) -> Value {
        let (Some(now), Some(before)) = (self.network, before.network) else {
            return Value::Null;
        };
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or_default();
        let rate = |now: u64, before: u64| {
            now.checked_sub(before)?
                .saturating_mul(1_000)
                .checked_div(elapsed)
        };
        json!({
            "receivedBytesPerSecond": rate(now.0, before.0),
            "sentBytesPerSecond": rate(now.1, before.1),
        })
    }
}

/// Whether this is a container: only there the cgroup that is seen as the root has a limit of memory.
fn in_container(places: &Places) -> bool {
    places.at("/sys/fs/cgroup/memory.current").exists()
}

/// The value of `NAME VALUE` in a file of counters.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':')
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// The busy time in the first line of /proc/stat, in microseconds (`proc_stat(5)`: hundredths of a
/// second; the fourth and fifth are idle).
fn busy(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Option<Vec<u64>> = line
        .split_whitespace()
        .map(|field| field.parse().ok())
        .collect();
    let fields = fields?;
    // Time of guests, the last two fields, is in the first two as well.
    let own = fields.iter().take(8).enumerate();
    let busy: u64 = own
        .filter(|(number, _)| !matches!(number, 3 | 4))
        .map(|(_, ticks)| ticks)
        .sum();
    Some(busy * 10_000)
}

/// The bytes of all interfaces but the loopback one (`proc_net(5)`, /proc/net/dev).
fn traffic(table: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for line in table.lines().skip(2) {
        let Some((name, counters)) = line.split_once(':') else {
            continue;
        };
        if name.trim() == "lo" {
            continue;
        }
        let counters: Vec<u64> = counters
            .split_whitespace()
            .filter_map(|one| one.parse().ok())
            .collect();
        sum.0 += counters.first().unwrap_or(&0);
        sum.1 += counters.get(8).unwrap_or(&0);
    }
    sum
}

fn memory(places: &Places) -> Value {
    let text = |path: &str| fs::read_to_string(places.at(path)).ok();
    let info = text("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| field(&info, name).map(|kib| kib * 1_024);
    let total = kib("MemTotal");
    if let Some(current) = text("/sys/fs/cgroup/memory.current") {
        let current: Option<u64> = current.trim().parse().ok();
        let stat = text("/sys/fs/cgroup/memory.stat").unwrap_or_default();
        // The kernel takes these pages back when it needs memory.
        let cached = field(&stat, "inactive_file").unwrap_or_default();
        let limit = text("/sys/fs/cgroup/memory.max").and_then(|max| max.trim().parse().ok());
        let used = current.map(|current| current.saturating_sub(cached));
        return json!({"usedBytes": used, "totalBytes": limit.or(total)});
    }
    let used = total
        .zip(kib("MemAvailable"))
        .map(|(total, free)| total.saturating_sub(free));
    json!({"usedBytes": used, "totalBytes": total})
}

fn disk(path: &Path) -> Value {
    let Ok(stat) = statvfs(path) else {
        return Value::Null;
    };
    let unit = stat.fragment_size();
    let (total, free) = (stat.blocks() * unit, stat.blocks_available() * unit);
    json!({"usedBytes": total.saturating_sub(free), "totalBytes": total})
}

/// The GPUs by nvidia-smi; none without the program.
fn gpus(program: &OsStr) -> Vec<Value> {
    let output = Command::new(program)
        .args(GPU_QUERY)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().filter_map(gpu).collect()
        }
        _ => Vec::new(),
    }
}

fn gpu(line: &str) -> Option<Value> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, name, utilization, used, total] = fields[..] else {
        return None;
    };
    let mebibytes = |text: &str| text.parse::<u64>().ok().map(|mebibytes| mebibytes << 20);
    Some(json!({
        "index": index.parse::<u64>().ok(),
        "name": name,
        "utilizationPercent": utilization.parse::<u64>().ok(),
        "memory": {"usedBytes": mebibytes(used), "totalBytes": mebibytes(total)},
    }))
}

fn running(places: &Places) -> Vec<Value> {
    let jobs = jobs::running(&places.jobs()).unwrap_or_default();
    let shown = jobs
        .iter()
        .map(|job| json!({"name": job.name, "since": job.since.map(|at| format!("{at:.0}"))}));
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_wait_are_not_busy() {
        // user nice system idle iowait irq softirq steal guest guest_nice
        assert_eq!(
            busy("cpu  10 1 5 900 90 2 1 1 7 0\ncpu0 1\n"),
            Some(200_000)
        );
        assert_eq!(busy("intr 1\n"), None);
    }

    #[test]
    fn traffic_within_the_machine_does_not_count() {
        let table = "head\nhead\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n";
        assert_eq!(traffic(table), (100, 50));
    }

    #[test]
    fn a_gpu_that_hides_its_use_is_still_shown() {
        let shown = gpu("0, NVIDIA T4, [N/A], 1024, 15360").unwrap();
        assert_eq!(shown["utilizationPercent"], Value::Null);
        assert_eq!(shown["memory"]["usedBytes"], 1 << 30);
        assert_eq!(gpu("No devices were found"), None);
    }
}
