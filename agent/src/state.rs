//! The state of the agent. It survives a restart of the agent, but not a restart of the machine.

use std::io;

use serde::{Deserialize, Serialize};

use crate::file;
use crate::places::Places;
use crate::signs::Memory;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const LONGEST: u64 = 64 * 1024;

/// The content of the state file.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The id of the boot in which it was written.
    boot: String,
    /// The last report.
    pub report: String,
    /// The last signs of use.
    pub memory: Memory,
}

/// The state that an earlier agent has written since the machine started; none without one.
pub fn load(places: &Places) -> Option<State> {
    let content = file::read(&places.state(), LONGEST).ok()?;
    let state: State = serde_json::from_slice(&content).ok()?;
    (Some(&state.boot) == boot(places).as_ref()).then_some(state)
}

/// Writes the last report and the last signs of use. Every user may read the file.
pub fn save(places: &Places, report: String, memory: Memory) -> io::Result<()> {
    let boot = boot(places).ok_or_else(|| io::Error::other(format!("cannot read {BOOT}")))?;
    let state = State {
        boot,
        report,
        memory,
    };
    file::replace(&places.state(), &serde_json::to_vec(&state)?, 0o644)
}

fn boot(places: &Places) -> Option<String> {
    let boot = std::fs::read_to_string(places.at(BOOT)).ok()?;
    Some(boot.trim().to_owned()).filter(|boot| !boot.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn state_survives_a_restart_of_the_agent_but_not_of_the_machine() {
        let root = std::env::temp_dir().join(format!("agent-state-{}", std::process::id()));
        let places = Places::new(&root, Path::new("/run/gpu-workspace"));
        let boot = places.at(BOOT);
        fs::create_dir_all(boot.parent().unwrap()).unwrap();
        fs::create_dir_all(places.run()).unwrap();
        fs::write(&boot, "one\n").unwrap();
        assert_eq!(load(&places), None);
        save(&places, "v1".into(), Memory::default()).unwrap();
        assert_eq!(load(&places).unwrap().report, "v1");
        fs::write(&boot, "two\n").unwrap();
        assert_eq!(load(&places), None);
        fs::write(places.state(), "{").unwrap();
        assert_eq!(load(&places), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
