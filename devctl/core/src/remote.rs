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

    #[test]
    fn a_machine_with_one_gpu_gets_python_and_one_with_two_torchrun() {
        let folder = std::env::temp_dir().join(format!("devctl-remote-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fake = |name: &str, body: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
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
