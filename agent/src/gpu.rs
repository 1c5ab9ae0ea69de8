//! The use of GPUs, from nvidia-smi.
//!
//! NVML is a shared library, which a static program cannot load.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::log::Log;
use crate::places::Places;
use crate::signals;
use crate::signs::Look;

const QUERY: [&str; 2] = [
    "--query-gpu=utilization.gpu",
    "--format=csv,noheader,nounits",
];
/// NVIDIA's PCI vendor id.
const VENDOR: &str = "0x10de";

/// Reads the GPUs with nvidia-smi.
#[derive(Debug)]
pub struct Gpus {
    /// The program to run.
    pub program: OsString,
    /// Utilization in percent above which a GPU is in use.
    pub threshold: u32,
    /// Longest time to wait for the program.
    pub timeout: Duration,
    /// A program that hangs. It may not even end on SIGKILL, so no second one is started.
    pub hanging: Option<Receiver<io::Result<Output>>>,
}

/// The result of nvidia-smi.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Utilisation(String),
    NoProgram,
    Failure { kind: &'static str, text: String },
}

impl Gpus {
    /// Reads the utilization of all GPUs.
    pub fn look(&mut self, places: &Places, log: &Log) -> Look {
        let answer = self.ask();
        let (kind, text) = match &answer {
            Answer::Utilisation(text) => match judge(text, self.threshold) {
                Look::Unknown => ("answer", format!("nvidia-smi says {:?}", text.trim())),
                look => {
                    log.fine("gpu");
                    return look;
                }
            },
            Answer::NoProgram if !is_there(places) => return Look::Absent,
            Answer::Failure { .. } if !is_there(places) && !is_on_the_bus(places) => {
                return Look::Absent;
            }
            Answer::NoProgram => ("program", "there is a GPU, and no nvidia-smi".to_owned()),
            Answer::Failure { kind, text } => (*kind, text.clone()),
        };
        log.problem("gpu", kind, &text);
        Look::Unknown
    }

    fn ask(&mut self) -> Answer {
        let answer = match self.hanging.take() {
            Some(earlier) => earlier,
            None => match self.start() {
                Ok(answer) => answer,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Answer::NoProgram,
                Err(error) => return failure("start", format!("nvidia-smi: {error}")),
            },
        };
        match answer.recv_timeout(self.timeout) {
            Ok(Ok(output)) if output.status.success() => {
                Answer::Utilisation(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stdout);
                let said = said.lines().next().unwrap_or_default();
                failure("status", format!("nvidia-smi: {}: {said}", output.status))
            }
            Ok(Err(error)) => failure("output", format!("nvidia-smi: {error}")),
            Err(RecvTimeoutError::Timeout) => {
                self.hanging = Some(answer);
                failure("timeout", "nvidia-smi does not answer".into())
            }
            Err(RecvTimeoutError::Disconnected) => failure("thread", "nvidia-smi: lost".into()),
        }
    }

    fn start(&self) -> io::Result<Receiver<io::Result<Output>>> {
        let mut command = Command::new(&self.program);
        command
            .args(QUERY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = signals::spawn(&mut command)?;
        let (sender, receiver) = channel();
        let (ended, end) = channel();
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        let timeout = self.timeout;
        thread::spawn(move || {
            let output = child.wait_with_output();
            // The receivers may be gone.
            let _ = (ended.send(()), sender.send(output));
        });
        thread::spawn(move || {
            if end.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                // The program may end by itself at the same moment.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        });
        Ok(receiver)
    }
}

fn failure(kind: &'static str, text: String) -> Answer {
    Answer::Failure { kind, text }
}

/// Parses the output of nvidia-smi: one line with a percentage for each GPU.
fn judge(text: &str, threshold: u32) -> Look {
    let all: Result<Vec<u32>, _> = text.lines().map(|line| line.trim().parse()).collect();
    let in_use = text
        .lines()
        .filter_map(|line| line.trim().parse::<u32>().ok());
    let most = in_use.max();
    match (most, all) {
        (Some(most), _) if most > threshold => Look::Active,
        (Some(_), Ok(_)) => Look::Idle { last: None },
        // There is no GPU, or one does not report its utilization: a GPU in MIG mode has `[N/A]`.
        _ => Look::Unknown,
    }
}

fn is_there(places: &Places) -> bool {
    places.at("/dev/nvidia0").exists()
}

/// Whether the PCI bus has a GPU. Images for GPUs have nvidia-smi even on machines without a GPU,
/// where it fails.
fn is_on_the_bus(places: &Places) -> bool {
    let Ok(devices) = fs::read_dir(places.at("/sys/bus/pci/devices")) else {
        return false;
    };
    devices.flatten().any(|device| {
        let vendor = fs::read_to_string(device.path().join("vendor"));
        vendor.is_ok_and(|vendor| vendor.trim() == VENDOR)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use super::*;

    const IDLE: Look = Look::Idle { last: None };

    #[test]
    fn one_gpu_above_the_threshold_is_use() {
        assert_eq!(judge("0\n0\n", 5), IDLE);
        assert_eq!(judge("5\n", 5), IDLE);
        assert_eq!(judge("0\n6\n", 5), Look::Active);
    }

    #[test]
    fn a_gpu_without_utilization_is_unknown_unless_another_is_in_use() {
        assert_eq!(judge("[N/A]\n", 5), Look::Unknown);
        assert_eq!(judge("0\n[N/A]\n", 5), Look::Unknown);
        assert_eq!(judge("100\n[N/A]\n", 5), Look::Active);
        assert_eq!(judge("", 5), Look::Unknown);
    }

    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, script: Option<&str>) -> Self {
            let root =
                std::env::temp_dir().join(format!("agent-gpu-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("dev")).unwrap();
            if let Some(script) = script {
                fs::write(root.join("nvidia-smi"), script).unwrap();
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(root.join("nvidia-smi"), mode).unwrap();
            }
            Self(root)
        }

        fn look(&self) -> Look {
            let mut gpus = Gpus {
                program: self.0.join("nvidia-smi").into(),
                threshold: 5,
                timeout: Duration::from_millis(300),
                hanging: None,
            };
            gpus.look(&Places::new(&self.0, Path::new("/run")), &Log::default())
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_machine_without_a_gpu_has_no_such_source() {
        assert_eq!(Machine::new("none", None).look(), Look::Absent);
        let fails = "#!/bin/sh\necho no driver\nexit 9\n";
        let image = Machine::new("image", Some(fails));
        assert_eq!(image.look(), Look::Absent);
        let device = image.0.join("sys/bus/pci/devices/0000:00:1e.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("vendor"), "0x10de\n").unwrap();
        assert_eq!(image.look(), Look::Unknown, "its driver does not work");
    }

    #[test]
    fn a_gpu_without_a_working_nvidia_smi_is_unknown() {
        let lacks = Machine::new("lacks", None);
        fs::write(lacks.0.join("dev/nvidia0"), "").unwrap();
        assert_eq!(lacks.look(), Look::Unknown);
        let hangs = Machine::new("hangs", Some("#!/bin/sh\nexec sleep 100\n"));
        fs::write(hangs.0.join("dev/nvidia0"), "").unwrap();
        assert_eq!(hangs.look(), Look::Unknown);
    }

    #[test]
    fn the_query_of_nvidia_smi_matches_the_parser() {
        let script = "#!/bin/sh\n[ \"$*\" = '--query-gpu=utilization.gpu --format=csv,noheader,nounits' ] && echo 0 && echo 97\n";
        assert_eq!(Machine::new("busy", Some(script)).look(), Look::Active);
    }
}
