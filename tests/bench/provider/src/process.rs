//! The provider's process: its start and end, its metrics, its memory and its processor time.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Outcome;

/// The longest time until the provider is ready.
const PATIENCE: Duration = Duration::from_mins(1);
const INTERVAL: Duration = Duration::from_millis(100);
/// The bytes of a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// A running provider. Dropping the value kills the process.
#[derive(Debug)]
pub(crate) struct Provider {
    child: Child,
    address: String,
    log: PathBuf,
}

/// The text that the provider answered at `/metrics`.
#[derive(Clone, Debug)]
pub(crate) struct Metrics(String);

impl Provider {
    /// Starts the provider as the user of this kubeconfig, and waits until it is ready.
    pub(crate) async fn start(program: &Path, kubeconfig: &Path, log: PathBuf) -> Outcome<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = free.local_addr()?.to_string();
        drop(free);
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        command
            .args(["--operations-address", &address])
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = command
            .spawn()
            .map_err(|e| format!("start {command:?}: {e}"))?;
        let mut provider = Self {
            child,
            address,
            log,
        };
        provider.await_readiness().await?;
        Ok(provider)
    }

    async fn await_readiness(&mut self) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            let answer = self.get("/readyz").await.unwrap_or_default();
            if answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200") {
                return Ok(());
            }
            let ended = self.child.try_wait()?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let log = self.log.display();
                return Err(format!("the provider does not get ready; its log is {log}").into());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    pub(crate) async fn metrics(&self) -> Outcome<Metrics> {
        Ok(Metrics(self.get("/metrics").await?))
    }

    async fn get(&self, path: &str) -> Outcome<String> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: provider\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// The process's resident memory in bytes.
    pub(crate) fn resident(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path)?;
        resident(&status).ok_or_else(|| format!("{path} has no VmRSS").into())
    }

    /// The processor time that the process has used, in seconds.
    pub(crate) fn processor_time(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path)?;
        processor_time(&stat).ok_or_else(|| format!("{path} has no times").into())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Metrics {
    /// The sum of a metric's samples that carry all of these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let samples = self.0.lines().filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            let (metric, of) = sample.split_once('{').unwrap_or((sample, ""));
            let fits = metric == name && labels.iter().all(|label| of.contains(label));
            if fits {
                value.parse::<f64>().ok()
            } else {
                None
            }
        });
        samples.sum()
    }
}

/// Reads the figure after `VmRSS:`. Its unit kB stands for 1024 bytes (proc(5)).
fn resident(status: &str) -> Option<f64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Adds utime and stime, the 14th and the 15th field, which are in hundredths of a second
/// (proc(5)). The second field is the program's name in parentheses and may contain spaces, so the
/// fields are counted from the last parenthesis.
fn processor_time(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Vec<f64> = ticks
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<_>>()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_other_metrics_and_labels_do_not_count() {
        let metrics = Metrics(
            "# HELP a b\nrequests_total{code=\"200\",method=\"PUT\"} 3\n\
             requests_total{code=\"409\",method=\"PUT\"} 1\n\
             requests_total{code=\"200\",method=\"GET\"} 7\nrequests_total_of{method=\"PUT\"} 9\n"
                .to_owned(),
        );
        assert!((metrics.sum("requests_total", &["method=\"PUT\""]) - 4.0).abs() < f64::EPSILON);
        assert!((metrics.sum("requests_total", &[]) - 11.0).abs() < f64::EPSILON);
    }

    #[test]
    fn memory_is_read_in_bytes_and_time_in_seconds() {
        assert_eq!(
            resident("Name:\tx\nVmRSS:\t    5632 kB\n"),
            Some(5632.0 * 1024.0)
        );
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 310 25 0 0 20 0 3 0";
        assert_eq!(processor_time(stat), Some(3.35));
    }
}
