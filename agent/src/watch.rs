//! `watch`: reads the sources every few seconds, sends reports, and runs hooks before an
//! interruption. Each task has its own thread, so none waits for another.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::sys::signal::{SigSet, Signal};

use crate::arguments::Watch;
use crate::destination::{Destination, To};
use crate::ec2::Ec2;
use crate::gpu::Gpus;
use crate::hook;
use crate::imds::Imds;
use crate::interruption;
use crate::jobs;
use crate::kernels;
use crate::lease::Lease;
use crate::log::Log;
use crate::places::Places;
use crate::registration;
use crate::reporter::{self, Newest};
use crate::signs::Looks;
use crate::ssh::{self, Sessions};
use crate::state;
use crate::stop::Reason;

/// Longest time for nvidia-smi. Without persistence mode it loads the driver first.
const GPU_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches the workspace until SIGTERM or SIGINT.
pub fn run(places: &Places, given: &Watch) -> Result<ExitCode, String> {
    // Process 1 of a container is not ended by a signal that it does not handle. Threads inherit
    // the signal mask. Commands are started without it.
    let ends: SigSet = [Signal::SIGTERM, Signal::SIGINT].into_iter().collect();
    ends.thread_block().map_err(|error| error.to_string())?;
    for folder in [places.jobs(), places.watching()] {
        registration::prepare(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let log = Arc::new(Log::default());
    let newest = Arc::new(Newest::default());
    let to = To::read(&given.to)?;
    let mut destination = destination(places, given, &to)?;
    let interval = Duration::from_secs(given.report_interval);
    spawn({
        let (newest, log) = (Arc::clone(&newest), Arc::clone(&log));
        move || reporter::run(&newest, &mut destination, interval, &log)
    });
    if to == To::Ec2 {
        let imds = imds(given)?;
        let (places, log) = (places.clone(), Arc::clone(&log));
        let (owner, longest) = (given.owner.clone(), Duration::from_secs(given.hook_timeout));
        thread::spawn(move || interrupted(&imds, &places, &owner, longest, &log));
    }
    let mut looking = Looking {
        places: places.clone(),
        ssh_port: given.ssh_port,
        sessions: Sessions::default(),
        gpus: Gpus {
            program: given.nvidia_smi.clone(),
            threshold: given.gpu_threshold,
            timeout: GPU_TIMEOUT,
            hanging: None,
        },
        homes: given.home.iter().map(|home| places.at(home)).collect(),
        started: Instant::now(),
    };
    let pause = Duration::from_secs(given.sample_interval);
    spawn(move || looking.forever(pause, &newest, &log));
    ends.wait().map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// The input of a reading.
struct Looking {
    places: Places,
    ssh_port: u16,
    sessions: Sessions,
    gpus: Gpus,
    homes: Vec<PathBuf>,
    started: Instant,
}

impl Looking {
    fn forever(&mut self, pause: Duration, newest: &Newest, log: &Log) -> Infallible {
        let before = state::load(&self.places);
        let mut memory = before.map(|state| state.memory).unwrap_or_default();
        loop {
            let looks = self.look(log);
            let report = memory.report(Timestamp::now(), &looks);
            match state::save(&self.places, report.to_string(), memory) {
                Ok(()) => {
                    log.fine("state");
                }
                Err(error) => {
                    let file = self.places.state();
                    let text = format!("{}: {error}", file.display());
                    log.problem("state", &error.kind().to_string(), &text);
                }
            }
            newest.put(report);
            thread::sleep(pause);
        }
    }

    fn look(&mut self, log: &Log) -> Looks {
        let now = self.started.elapsed();
        Looks {
            ssh: ssh::look(&self.places, self.ssh_port, &mut self.sessions, now, log),
            job: jobs::look(&self.places.jobs(), log),
            gpu: self.gpus.look(&self.places, log),
            kernel: kernels::look(&self.homes, log),
        }
    }
}

fn destination(places: &Places, given: &Watch, to: &To) -> Result<Destination, String> {
    match to {
        To::Stdout => Ok(Destination::Stdout),
        To::Ec2 => {
            let endpoint = given.ec2_endpoint.clone().filter(|one| !one.is_empty());
            let ec2 = Ec2::new(imds(given)?, endpoint, places.clone());
            Ok(Destination::Ec2(Box::new(ec2.map_err(|e| e.to_string())?)))
        }
        To::Lease { namespace, name } => Ok(Destination::Lease(Lease {
            namespace: namespace.clone(),
            name: name.clone(),
            server: match &given.kubernetes {
                Some(server) => server.clone(),
                None => server_of_the_pod()?,
            },
            service_account: places.at(&given.service_account),
        })),
    }
}

fn imds(given: &Watch) -> Result<Imds, String> {
    Imds::new(&given.metadata_endpoint).map_err(|error| error.to_string())
}

/// The API server of the pod's cluster. Kubernetes sets the variables in every pod ("Accessing the
/// Kubernetes API from a Pod").
fn server_of_the_pod() -> Result<String, String> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| format!("{name} is not set: name --kubernetes URL"))
    };
    let host = variable("KUBERNETES_SERVICE_HOST")?;
    let port = variable("KUBERNETES_SERVICE_PORT")?;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    Ok(format!("https://{host}:{port}"))
}

/// Waits for an interruption, and runs the hooks. A spot instance gets at most one notice.
fn interrupted(imds: &Imds, places: &Places, owner: &str, longest: Duration, log: &Log) {
    let notice = interruption::notice(imds, log);
    log.event(&format!(
        "interruption: {} at {:.0}",
        notice.action, notice.time
    ));
    let patience = interruption::patience(longest, notice.time, Timestamp::now());
    if let Err(problem) = hook::before_stop(places, owner, Reason::Interruption, patience) {
        log.problem("hook", "failure", &problem);
    }
}

/// Starts a thread that must never end. If it ends, the process exits, and systemd or kubelet
/// starts it again.
fn spawn(work: impl FnOnce() -> Infallible + Send + 'static) {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            std::process::exit(1);
        }
    }
    thread::spawn(move || {
        let _end = End;
        work();
    });
}
