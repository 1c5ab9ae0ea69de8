//! The setup of the software on the instance of a pool, as the provider reads it from the console.

use api::pool::{PoolInstance, PoolSetup, PoolSetupState};
use function_workspace::setup::Setup;
use function_workspace::tenant_text::bounded;

use crate::spot::observed::ObservedPool;
use crate::user_data::LOG_PATH;

/// The setup of an instance. The owner of the instance writes to its console, too, so the message is
/// bounded.
pub fn of(pool: &ObservedPool, instance: &PoolInstance) -> Setup {
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
        PoolSetupState::SettingUp if said.is_empty() => Setup::Going(format!(
            "instance {id} installs its software; {LOG_PATH} on it has the progress"
        )),
        PoolSetupState::SettingUp => Setup::Going(format!("instance {id}: {said}")),
        PoolSetupState::Failed => Setup::Failed(failed(id, &said)),
        PoolSetupState::Unknown => Setup::Unknown(format!("instance {id}: {said}")),
    }
}

/// What the owner reads about a failed step. `said` is the step, as the setup wrote it.
fn failed(id: &str, said: &str) -> String {
    let what_to_do = STEPS
        .iter()
        .find(|(step, _)| said.starts_with(step))
        .map_or("log in and read the log", |(_, what_to_do)| what_to_do);
    format!("the setup of instance {id} failed at: {said}; {what_to_do}")
}

/// The steps of the setup script, each with what to change if it fails.
const STEPS: [(&str, &str); 8] = [
    ("start", "log in and read the log"),
    (
        "read workspace.json",
        "the image lacks python3: the platform team adds it to the image of the catalogue",
    ),
    (
        "create the virtual environment",
        "the platform team adds python3-venv to the image of the catalogue, or lets the network \
         reach Debian's packages",
    ),
    (
        "install PyTorch",
        "change spec.parameters.pytorchVersion, or let the network reach the catalogue's \
         pytorchIndexUrl",
    ),
    (
        "install OpenCV",
        "change spec.parameters.opencvVersion, or let the network reach the package index",
    ),
    (
        "add the PyTorch of the image",
        "the platform team corrects pytorch.python of the image in the catalogue",
    ),
    (
        "verify",
        "the packages do not fit together: change spec.parameters.opencvVersion or pytorchVersion",
    ),
    ("put it on the PATH", "log in and read the log"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use provider_core::{Console, SetupResult};

    const SCRIPT: &str = include_str!("../user_data/setup.sh");

    fn steps() -> Vec<&'static str> {
        let lines = SCRIPT.lines();
        let steps = lines.filter_map(|line| line.strip_prefix("step='")?.strip_suffix('\''));
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
                .replace("$rc", "1")
                .replace("$log", LOG_PATH);
            let Some(SetupResult::Failed(said)) = read(&line) else {
                panic!("{line}");
            };
            assert_eq!(said, format!("{step} (exit 1), see {LOG_PATH}"));
        }
    }

    #[test]
    fn every_step_of_the_setup_tells_what_to_change() {
        let known: Vec<&str> = STEPS.iter().map(|(step, _)| *step).collect();
        assert_eq!(known, steps());
    }
}
