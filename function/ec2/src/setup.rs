//! The setup of the software on a machine, as its console or its agent tells it.

use activity_report::setup::{self, SetupResult};
use api::pool::{PoolInstance, PoolSetup, PoolSetupState};
use function_workspace::setup::Setup;
use function_workspace::tenant_text::bounded;

use crate::on_demand::OnDemandInstance;
use crate::spot::ObservedPool;
use crate::user_data::LOG_PATH;

/// The setup of an instance of a pool. The owner of the instance writes to its console, too, so the
/// message is bounded.
pub fn of_pool(pool: &ObservedPool, instance: &PoolInstance) -> Setup {
    if !pool.parameters.read_console {
        return Setup::Unreported;
    }
    let id = &instance.id;
    let Some(PoolSetup { state, message }) = &instance.setup else {
        return Setup::Going(format!(
            "waiting for provider-gpu-spot to read the console of instance {id}"
        ));
    };
    let said = bounded(message.as_deref().unwrap_or_default());
    match state {
        PoolSetupState::Ready => Setup::Done,
        PoolSetupState::SettingUp if said.is_empty() => going(id),
        PoolSetupState::SettingUp => Setup::Going(format!("instance {id}: {said}")),
        PoolSetupState::Failed => Setup::Failed(failed(id, &said)),
        PoolSetupState::Unknown => Setup::Unknown(format!("instance {id}: {said}")),
    }
}

/// The setup of an on-demand instance. Its agent writes the result to a tag; an instance that started
/// without the empty tag has no agent that would.
pub fn of_instance(instance: &OnDemandInstance<'_>, id: &str) -> Setup {
    if !instance.reports_setup() {
        return Setup::Unreported;
    }
    match instance.setup().and_then(setup::read) {
        None => going(id),
        Some(SetupResult::Done) => Setup::Done,
        Some(SetupResult::Failed(step)) => Setup::Failed(failed(id, &step)),
    }
}

fn going(id: &str) -> Setup {
    Setup::Going(format!(
        "instance {id} installs its software; {LOG_PATH} on it has the progress"
    ))
}

/// What people read about a failed step. `said` is the step and its cause, as the setup wrote
/// them.
pub fn failed(id: &str, said: &str) -> String {
    let of_cause = CAUSES.iter().find(|(cause, _)| said.contains(cause));
    let of_step = || STEPS.iter().find(|(step, _)| said.starts_with(step));
    let what_to_do = of_cause.or_else(of_step);
    let what_to_do = what_to_do.map_or(READ_THE_LOG, |(_, what_to_do)| what_to_do);
    format!("the setup of instance {id} failed at: {said}; it is tried again; {what_to_do}")
}

const READ_THE_LOG: &str = "log in and read the log";

/// The causes that the setup script recognizes, each with what to change.
const CAUSES: [(&str, &str); 5] = [
    (
        ", disk full",
        "make room on the machine, or let the platform team raise \
         instance.rootVolumeSizeGiB of the policy",
    ),
    (", apt is in use", "another program on the machine uses apt"),
    (
        ", no network",
        "the machine reaches no package index: the platform team opens the way out, or names an \
         index that the machines reach in the image of the catalogue",
    ),
    (
        ", wrong digest",
        "the package index has another file than the platform expects: tell the platform team",
    ),
    (
        ", no such version",
        "the package index does not have it: change spec.parameters.opencvVersion or \
         spec.parameters.pytorchVersion",
    ),
];

/// The steps of the setup script, each with what to change if it fails for another cause.
const STEPS: [(&str, &str); 9] = [
    ("start", READ_THE_LOG),
    (
        "read workspace.json",
        "the image has no python3: the platform team adds it to the image of the catalogue",
    ),
    ("wait for the home", READ_THE_LOG),
    (
        "create the virtual environment",
        "the image's Python makes no virtual environment: the platform team corrects \
         pytorch.python of the image in the catalogue, or adds python3-venv to the image",
    ),
    ("install PyTorch", "change spec.parameters.pytorchVersion"),
    ("install OpenCV", "change spec.parameters.opencvVersion"),
    (
        "add the packages of the image",
        "the platform team corrects python or pytorch.python of the image in the catalogue",
    ),
    (
        "verify",
        "the packages do not fit together: change spec.parameters.opencvVersion or \
         spec.parameters.pytorchVersion",
    ),
    ("put it on the PATH", READ_THE_LOG),
];

#[cfg(test)]
mod tests {
    use super::*;
    use provider_core::Console;

    const SCRIPT: &str = include_str!("user_data/setup_v3.sh");

    fn steps() -> Vec<&'static str> {
        let lines = SCRIPT.lines();
        let steps = lines.filter_map(|line| line.split_once("step='")?.1.strip_suffix('\''));
        steps.collect()
    }

    /// The provider would never see the end of a setup whose closing lines it does not know.
    #[test]
    fn the_provider_reads_the_closing_lines_of_the_setup() {
        let lines = SCRIPT.lines().map(str::trim);
        let written: Vec<&str> = lines
            .filter_map(|line| Some(line.split_once("line=")?.1.trim_matches(['"', '\''])))
            .collect();
        let [done, failed] = written[..] else {
            panic!("{written:?}");
        };
        let read = |line: &str| Console::read(line.as_bytes()).setup;
        assert_eq!(read(done), Some(SetupResult::Done));
        for step in steps() {
            let line = failed
                .replace("$step", step)
                .replace("$(cause)", ", no network")
                .replace("$rc", "1")
                .replace("$log", LOG_PATH);
            let Some(SetupResult::Failed(said)) = read(&line) else {
                panic!("{line}");
            };
            assert_eq!(said, format!("{step}, no network (exit 1), see {LOG_PATH}"));
        }
    }

    #[test]
    fn every_cause_that_the_setup_recognizes_tells_what_to_change() {
        let echoed = SCRIPT
            .lines()
            .filter_map(|line| line.split_once("echo ', "));
        let written: Vec<String> = echoed
            .map(|(_, said)| format!(", {}", said.trim_end_matches('\'')))
            .collect();
        let known: Vec<&str> = CAUSES.iter().map(|(cause, _)| *cause).collect();
        assert_eq!(written, known);
    }

    #[test]
    fn every_step_of_the_setup_tells_what_to_change() {
        let known: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
        assert_eq!(known, steps());
    }
}
