//! Command lines for the shell of a workspace.
//!
//! sshd gives one line to the owner's shell. Each word in it is quoted, so the shell changes none.

use api::workspace::Placement;

use crate::ssh::client::shell;
use crate::workspace::Workspace;

/// The exit code of a workspace without an agent that knows jobs. Neither ssh nor a shell has it.
pub const NO_AGENT: i32 = 97;

/// The folders of the agent's program, in pods and on instances, after the user's own.
const FIND_AGENT: &str = "PATH=\"$PATH:/opt/gpu-workspace/agent:/usr/local/bin:/usr/local/sbin\"";
/// Runs a script by torchrun where there are several GPUs, and by python elsewhere.
const BY_GPUS: &str = "if [ \"$(nvidia-smi -L 2>/dev/null | grep -c .)\" -gt 1 ]; \
                       then exec torchrun --standalone --nproc-per-node=gpu \"$@\"; \
                       else exec python \"$@\"; fi";

/// A line that runs the agent, or ends with [`NO_AGENT`].
pub fn agent(arguments: &[String]) -> String {
    format!(
        "{FIND_AGENT}; gpu-workspace-agent job list >/dev/null 2>&1 || exit {NO_AGENT}; \
         exec gpu-workspace-agent {}",
        quoted(arguments)
    )
}

/// A line that prints a job's output from a byte on until the job ends, and ends with its code.
pub fn follow(job: &str, from: u64) -> String {
    let job = shell(job);
    format!(
        "{FIND_AGENT}; gpu-workspace-agent job logs --follow --from {from} {job} && \
         exec gpu-workspace-agent job wait {job}"
    )
}

/// A line that prints the output of a job that has ended, from a byte on.
pub fn rest(job: &str, from: u64) -> String {
    let job = shell(job);
    format!("{FIND_AGENT}; exec gpu-workspace-agent job logs --from {from} {job}")
}

/// The file with the process id of Jupyter, and the folder in which servers describe themselves
/// (`jupyter --runtime-dir`).
const JUPYTER: &str = "p=\"${XDG_STATE_HOME:-$HOME/.local/state}/devctl/jupyter.pid\"; \
    r=\"${JUPYTER_RUNTIME_DIR:-$HOME/.local/share/jupyter/runtime}\"";
/// Runs Jupyter, which keeps the process id of this shell. What a server of the same id left is removed.
const RUN_JUPYTER: &str = "rm -f \"$r/jpserver-$$.json\"; mkdir -p \"$(dirname \"$p\")\" && \
    echo $$ > \"$p\" && PATH=\"$PATH:$HOME/.local/bin\" && \
    exec jupyter lab --no-browser --ServerApp.ip=127.0.0.1";
/// Waits until Jupyter has described itself, and prints that. Fails if Jupyter ends, or after a minute.
const JUPYTER_DESCRIBED: &str = "n=0; while :; do i=\"$(cat \"$p\" 2>/dev/null)\"; \
    f=\"$r/jpserver-$i.json\"; \
    if [ -n \"$i\" ] && tail -c 2 \"$f\" 2>/dev/null | grep -q '}'; then exec cat \"$f\"; fi; \
    if [ -n \"$i\" ]; then kill -0 \"$i\" || exit 1; fi; \
    n=$((n+1)); [ $n -le 300 ] || exit 1; sleep 0.2; done";

/// A line that starts Jupyter as a job, which does not count as use, and prints the job's id.
pub fn start_jupyter(job: &str) -> String {
    let script = format!("{JUPYTER}; {RUN_JUPYTER}");
    let words = ["job", "start", "--no-use", "--name", job, "--", "sh", "-c"];
    let words = words.map(str::to_owned).into_iter().chain([script]);
    let words: Vec<String> = words.collect();
    // The id of a server that ended long ago must not be taken for the new one's.
    format!("{JUPYTER}; rm -f \"$p\"; {}", agent(&words))
}

/// A line that waits until Jupyter listens, and prints its description
/// (`jupyter_server.serverapp.ServerApp.server_info`).
pub fn jupyter_described() -> String {
    format!("{JUPYTER}; {JUPYTER_DESCRIBED}")
}

/// What runs for a command: a Python file runs by torchrun where there are several pods or GPUs.
pub fn program(workspace: Workspace<'_>, command: &[String]) -> Vec<String> {
    let is_python = command.first().is_some_and(|first| {
        std::path::Path::new(first)
            .extension()
            .is_some_and(|one| one == "py")
    });
    let own = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let before = match (is_python, workspace.placement(), workspace.replicas()) {
        (false, ..) => Vec::new(),
        (true, Placement::Cluster, 2..) => own(&["workspace-torchrun"]),
        (true, ..) => own(&["sh", "-c", BY_GPUS, "sh"]),
    };
    before.into_iter().chain(command.iter().cloned()).collect()
}

/// The words of a line.
pub fn quoted(words: &[String]) -> String {
    words
        .iter()
        .map(|word| shell(word))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn claim(parameters: &Value) -> Value {
        json!({"spec": {"parameters": parameters}})
    }

    #[test]
    fn the_shell_of_the_workspace_changes_no_argument() {
        let given = words(&["a b", "$(reboot)", "it's", "*", "", "--x=1"]);
        let echo = format!("printf '%s\\n' {}", quoted(&given));
        let ran = std::process::Command::new("sh")
            .args(["-c", &echo])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(ran.stdout).unwrap(),
            "a b\n$(reboot)\nit's\n*\n\n--x=1\n"
        );
    }

    #[test]
    fn a_python_file_runs_on_all_pods_and_gpus() {
        let train = words(&["train.py", "--batch-size", "32"]);
        let pods = claim(&json!({"placement": "Cluster", "distributed": {"nodes": 4}}));
        assert_eq!(
            program(Workspace::new(&pods), &train)[..2],
            ["workspace-torchrun", "train.py"]
        );
        let one = claim(&json!({}));
        let line = program(Workspace::new(&one), &train);
        assert_eq!((line[0].as_str(), line[4].as_str()), ("sh", "train.py"));
        let other = words(&["make", "train"]);
        assert_eq!(program(Workspace::new(&pods), &other), other);
    }

    /// A machine with an agent that starts jobs, and a `JupyterLab`.
    fn with_jupyter(name: &str, jupyter: &str) -> PathBuf {
        let home = std::env::temp_dir().join(format!("devctl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(home.join(".local/bin")).unwrap();
        let agent = "[ \"$2\" = list ] && exit 0; [ \"$*\" != \"${*#job start --no-use --name j -- sh -c}\" ] \
                     || exit 1; shift 6; \"$@\" >/dev/null 2>&1 & echo j-1";
        script(&home.join(".local/bin"), "gpu-workspace-agent", agent);
        script(&home.join(".local/bin"), "jupyter", jupyter);
        home
    }

    fn says(home: &Path, line: &str) -> std::process::Output {
        std::process::Command::new("sh")
            .args(["-c", line])
            .env("HOME", home)
            .env_remove("XDG_STATE_HOME")
            .env(
                "PATH",
                format!("{}/.local/bin:/usr/bin:/bin", home.display()),
            )
            .output()
            .unwrap()
    }

    fn script(folder: &Path, name: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn jupyter_tells_its_port_and_its_token_when_it_listens() {
        let runtime = "$HOME/.local/share/jupyter/runtime";
        let serve = format!(
            "echo \"$@\" > ~/arguments; mkdir -p {runtime}; printf '{{\"port\":' > {runtime}/jpserver-$$.json; \
             sleep 0.5; echo ' 8889}}' >> {runtime}/jpserver-$$.json; exec sleep 20"
        );
        let home = with_jupyter("jupyter", &serve);
        // The shells of two starts hardly have the same id; what an ended server left is its id.
        let state = home.join(".local/state/devctl");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("jupyter.pid"), "1").unwrap();
        std::fs::create_dir_all(home.join(".local/share/jupyter/runtime")).unwrap();
        let left = home.join(".local/share/jupyter/runtime/jpserver-1.json");
        std::fs::write(left, "{\"port\": 1}").unwrap();
        let started = says(&home, &start_jupyter("j"));
        assert_eq!(started.stdout, b"j-1\n", "{started:?}");
        let described = says(&home, &jupyter_described());
        assert_eq!(described.stdout, b"{\"port\": 8889}\n", "{described:?}");
        let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap();
        assert_eq!(
            read("arguments"),
            "lab --no-browser --ServerApp.ip=127.0.0.1\n"
        );
        let process = read(".local/state/devctl/jupyter.pid");
        assert!(says(&home, &format!("kill {process}")).status.success());
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_jupyter_that_ends_at_once_is_not_waited_for() {
        let home = with_jupyter("no-jupyter", "exit 3");
        let began = std::time::Instant::now();
        says(&home, &start_jupyter("j"));
        assert_eq!(says(&home, &jupyter_described()).status.code(), Some(1));
        assert!(began.elapsed().as_secs() < 20);
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_machine_with_one_gpu_gets_python_and_one_with_two_torchrun() {
        let folder = std::env::temp_dir().join(format!("devctl-remote-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fake = |name: &str, body: &str| script(&folder, name, body);
        fake("python", "echo python \"$@\"");
        fake("torchrun", "echo torchrun \"$@\"");
        let one = claim(&json!({}));
        for (gpus, expected) in [
            ("exit 1", "python train.py\n"),
            ("echo 'GPU 0'", "python train.py\n"),
            (
                "echo 'GPU 0'; echo 'GPU 1'",
                "torchrun --standalone --nproc-per-node=gpu train.py\n",
            ),
        ] {
            fake("nvidia-smi", gpus);
            let line = quoted(&program(Workspace::new(&one), &words(&["train.py"])));
            let path = format!("{}:/usr/bin:/bin", folder.display());
            let ran = std::process::Command::new("sh")
                .args(["-c", &line])
                .env("PATH", path)
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected, "{gpus}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
