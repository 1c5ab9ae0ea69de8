//! The process of a program: its start and end, the connection to it, its memory and its processor
//! time.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tonic::transport::ClientTlsConfig;

use crate::Outcome;
use crate::client::Client;
use crate::machine::Processors;
use crate::program::Program;

/// The longest time until a server serves.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two questions to a starting server whether it serves. The measured cold start
/// is only as exact as this.
const INTERVAL: Duration = Duration::from_millis(1);

/// The settings that all servers have in common.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The folder of the certificates and logs.
    pub(crate) folder: PathBuf,
    /// The folder of the files that every workspace's user data contains unchanged.
    pub(crate) user_data: PathBuf,
    /// The TLS configuration of the clients.
    pub(crate) tls: ClientTlsConfig,
    /// The processors of the servers and of the client.
    pub(crate) processors: Processors,
}

/// A running server. Dropping the value kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    /// A client with a connection to the server.
    pub(crate) client: Client,
    /// The time from the start of the process until the server says that it serves.
    pub(crate) cold_start: Duration,
}

impl Server {
    /// Starts a program and waits until it serves.
    pub(crate) async fn start(program: &Program, around: &Surroundings) -> Outcome<Self> {
        let address = free_address()?;
        let log = around.folder.join(format!("{}.log", program.name));
        let mut command = command(program, around, &address, &log)?;
        around.processors.to_servers()?;
        let began = Instant::now();
        let child = command.spawn();
        around.processors.to_client()?;
        let mut process = Process(child.map_err(|e| format!("start {command:?}: {e}"))?);
        loop {
            if let Ok(client) = Client::connect(&address, &around.tls).await
                && client.serves().await
            {
                let cold_start = began.elapsed();
                return Ok(Self {
                    process,
                    client,
                    cold_start,
                });
            }
            let ended = process.0.try_wait()?;
            if ended.is_some() || began.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log)?;
                let last = said.lines().last().unwrap_or("nothing");
                let (name, log) = (program.name, log.display());
                return Err(format!("{name} does not serve; it said ({log}): {last}").into());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// The process's resident memory in bytes.
    pub(crate) fn resident(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/status", self.id());
        let status = fs::read_to_string(&path)?;
        resident(&status).ok_or_else(|| format!("{path} has no VmRSS").into())
    }

    /// The processor time that the process has used, in milliseconds.
    pub(crate) fn processor_time(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/stat", self.id());
        let stat = fs::read_to_string(&path)?;
        processor_time(&stat).ok_or_else(|| format!("{path} has no times").into())
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(
    program: &Program,
    around: &Surroundings,
    address: &str,
    log: &Path,
) -> Outcome<Command> {
    let output = File::create(log)?;
    let mut command = Command::new(&program.command);
    command
        .args(&program.arguments)
        .args(["--address", address])
        .env("TLS_SERVER_CERTS_DIR", &around.folder)
        .env("USER_DATA_FILES", &around.user_data)
        // The default port is 8080, which servers on one machine cannot share.
        .env("METRICS_ADDRESS", free_address()?)
        // Otherwise Python writes its caches of compiled code into the checkout.
        .env("PYTHONPYCACHEPREFIX", around.folder.join("pycache"))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    Ok(command)
}

fn free_address() -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.to_string())
}

/// Reads the figure after `VmRSS:`. Its unit kB stands for 1024 bytes (proc(5)).
fn resident(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Adds utime and stime, the 14th and the 15th field (proc(5)). The second field is the program's
/// name in parentheses and may contain spaces, so the fields are counted from the last parenthesis.
/// In the figures that the kernel shows to programs, a tick is always a hundredth of a second.
fn processor_time(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<_>>()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident("Name:\tx\nVmRSS:\t    5632 kB\n"),
            Some(5632.0 * 1024.0)
        );
        assert_eq!(resident("Name:\tx\n"), None);
    }

    #[test]
    fn processor_time_counts_the_kernels_part_as_well() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 310 25 0 0 20 0 3 0";
        assert_eq!(processor_time(stat), Some(3350.0));
        assert_eq!(processor_time("42 (a) S 1"), None);
    }
}
