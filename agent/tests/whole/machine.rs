//! A machine for tests: a folder that the agent uses as its root directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest time to wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(40);
/// The user id of the account `nobody`, which every machine has. The owner in these tests has it.
pub const OWNER: u32 = 65_534;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const SERVED: &str = "   0: 00000000:0016 00000000:0000 0A 0:0 00:0 0 0 0 1 1 0\n";

pub struct Machine {
    pub root: PathBuf,
}

/// A process that is killed at the end of its test.
pub struct Running(pub Child);

impl Machine {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpu-workspace-agent-{}-{number}", std::process::id());
        let machine = Self {
            root: std::env::temp_dir().join(name),
        };
        machine.write(
            "/etc/passwd",
            &format!("developer:x:{OWNER}:{OWNER}::/home/developer:/bin/sh\n"),
        );
        machine.write("/proc/net/tcp", &[HEAD, SERVED].concat());
        machine.write("/proc/sys/kernel/random/boot_id", "first\n");
        machine.write("/var/log/messages", "");
        fs::create_dir_all(machine.at("/home/developer")).unwrap();
        machine
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Writes a file so that readers never see a part of it.
    pub fn write(&self, path: &str, content: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, content).unwrap();
        fs::rename(unfinished, path).unwrap();
    }

    /// Replaces the machine's TCP table by one with these connections to sshd. A number is the
    /// inode of a connection's socket, by which the agent tells connections apart.
    pub fn connect(&self, numbers: &[u32]) {
        let line =
            |n: &u32| format!("   1: 0A00000A:0016 0B00000A:C350 01 0:0 00:0 0 0 0 {n} 2 0\n");
        let lines: String = numbers.iter().map(line).collect();
        self.write("/proc/net/tcp", &[HEAD, SERVED, &lines].concat());
    }

    /// Writes a script that the machine can execute. Another process copies it: a process that
    /// another test starts meanwhile holds the files that this process writes, and the kernel
    /// executes no file that is open for writing (ETXTBSY, execve(2)).
    pub fn script(&self, path: &str, text: &str) {
        self.write("/unfinished-script", text);
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        let mut install = Command::new("install");
        install.args(["-m", "755"]);
        let copied = install
            .arg(self.at("/unfinished-script"))
            .arg(self.at(path));
        assert!(copied.status().unwrap().success());
    }

    pub fn agent(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-workspace-agent"));
        command
            .arg("--root")
            .arg(&self.root)
            .args(arguments)
            .env_remove("GPU_WORKSPACE_RUN_DIR")
            .stdin(Stdio::null());
        command
    }

    pub fn says(&self, arguments: &[&str]) -> Output {
        self.agent(arguments).output().unwrap()
    }

    /// Starts `watch`. Its standard error goes to the file `log`.
    pub fn watch(&self, arguments: &[&str]) -> Running {
        let log = fs::File::create(self.at("/log")).unwrap();
        let mut command = self.agent(&[
            "watch",
            "--sample-interval=1",
            "--nvidia-smi=/no/nvidia-smi",
        ]);
        let child = command.args(arguments).stdout(Stdio::null()).stderr(log);
        Running(child.spawn().unwrap())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.at("/log")).unwrap()
    }

    pub fn status(&self) -> Option<Value> {
        let said = self.says(&["status", "-o", "json"]);
        serde_json::from_slice(&said.stdout).ok()
    }

    /// The entry of a source in the output of `status`; none before the first report.
    pub fn source(&self, name: &str) -> Option<Value> {
        let status = self.status()?;
        let sources = status["sources"].as_array()?;
        sources.iter().find(|one| one["name"] == name).cloned()
    }

    pub fn becomes(&self, name: &str, state: &str) -> Value {
        until(&format!("{name} to be {state}"), || {
            self.source(name).filter(|source| source["state"] == state)
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Running {
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition returns a value.
pub fn until<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

pub fn own(path: &Path) {
    let owned = std::os::unix::fs::chown(path, Some(OWNER), Some(OWNER));
    let hint = "the owner is another user than the agent: run as root";
    assert!(owned.is_ok(), "{hint}: {owned:?}");
}
