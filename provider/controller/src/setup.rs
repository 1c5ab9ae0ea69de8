//! The setup of instances, as their agents or their consoles tell it.

use std::collections::BTreeMap;

use activity_report::setup::{self as report, SetupResult};
use api::pool::{PoolInstance, PoolSetup, PoolSetupState};
use jiff::Timestamp;
use provider_core::{ConsoleReading, Instance, InstanceState};

use crate::consoles::Read;

const SILENT: &str = "the console has not shown the end of the setup within fifteen minutes: look at \
                      the console in EC2, or log in and read /var/log/gpu-workspace-setup.log";

/// What the console of an instance says.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The setup.
    pub setup: PoolSetup,
    /// The SSH host keys.
    pub host_keys: Vec<String>,
}

/// The instances whose consoles are to be read, with the times of their launches. `shown` is what
/// their consoles say, by id.
pub fn wanted(
    instances: &[Instance],
    shown: &BTreeMap<String, Shown>,
) -> BTreeMap<String, Timestamp> {
    let is_done = |id: &String| {
        let shown = shown.get(id);
        shown.is_none_or(|shown| shown.setup.state == PoolSetupState::Ready)
    };
    instances
        .iter()
        .filter(|instance| instance.state == InstanceState::Running && !is_done(&instance.id))
        .filter_map(|instance| Some((instance.id.clone(), instance.launched_at?)))
        .collect()
}

/// What the console of an instance says. `read` is what was read last, `before` the status that the
/// last reconcile wrote. A result stays: a console loses its oldest lines.
pub fn of(
    instance: &Instance,
    read: Option<&Read>,
    before: &[PoolInstance],
    now: Timestamp,
) -> Shown {
    let before = before.iter().find(|shown| shown.id == instance.id);
    let console = read.and_then(|read| read.console.as_ref().ok());
    let host_keys = console.map(|console| console.host_keys.clone());
    let host_keys = host_keys.filter(|keys| !keys.is_empty());
    // An agent reports sooner than a console.
    let told = instance.setup.as_deref().and_then(report::read);
    let written = console.and_then(|console| console.setup.clone());
    let result = match (told, written) {
        (_, Some(SetupResult::Done)) => Some(SetupResult::Done),
        (told, written) => told.or(written),
    };
    Shown {
        setup: match (
            result.as_ref(),
            before.and_then(|before| before.setup.as_ref()),
        ) {
            (Some(SetupResult::Done), _) => setup(PoolSetupState::Ready, None),
            (_, Some(known)) if known.state == PoolSetupState::Ready => known.clone(),
            (Some(SetupResult::Failed(step)), _) => {
                setup(PoolSetupState::Failed, Some(step.as_str()))
            }
            (None, Some(known)) if known.state == PoolSetupState::Failed => known.clone(),
            (None, _) => unanswered(instance.launched_at, read, now),
        },
        host_keys: host_keys
            .or_else(|| before.map(|before| before.console_host_keys.clone()))
            .unwrap_or_default(),
    }
}

/// Whether the console of an instance is read and has not shown the end of the setup, according to the
/// status that the last reconcile wrote.
pub fn is_open(instance: &PoolInstance) -> bool {
    let setup = instance.setup.as_ref();
    setup.is_some_and(|setup| setup.state != PoolSetupState::Ready)
}

/// From when on the provider no longer believes that a setup goes on; none for a setup that has ended
/// or is unknown.
pub fn doubted_from(instance: &Instance, shown: &Shown) -> Option<Timestamp> {
    let launched_at = instance.launched_at?;
    (shown.setup.state == PoolSetupState::SettingUp)
        .then(|| ConsoleReading::doubted_from(launched_at))
}

fn unanswered(launched_at: Option<Timestamp>, read: Option<&Read>, now: Timestamp) -> PoolSetup {
    let is_late = launched_at.is_some_and(|at| now >= ConsoleReading::doubted_from(at));
    if let Some(Err(error)) = read.map(|read| &read.console) {
        let message = format!("the provider cannot read the console: {error}");
        let state = if is_late || error.class.needs_person() {
            PoolSetupState::Unknown
        } else {
            PoolSetupState::SettingUp
        };
        return setup(state, Some(&message));
    }
    if is_late {
        setup(PoolSetupState::Unknown, Some(SILENT))
    } else {
        setup(PoolSetupState::SettingUp, None)
    }
}

fn setup(state: PoolSetupState, message: Option<&str>) -> PoolSetup {
    PoolSetup {
        state,
        message: message.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provider_aws::Ec2Error;
    use provider_core::ErrorClass;

    fn error(class: ErrorClass) -> Read {
        Read {
            at: Timestamp::UNIX_EPOCH,
            console: Err(Ec2Error {
                operation: "GetConsoleOutput",
                code: "Code".into(),
                message: "no".into(),
                class,
            }),
        }
    }

    fn shown(read: &Read) -> PoolSetup {
        let now = Timestamp::UNIX_EPOCH;
        unanswered(Some(now), Some(read), now)
    }

    #[test]
    fn a_missing_permission_is_said_at_once_and_a_throttled_call_is_not() {
        let denied = shown(&error(ErrorClass::Denied));
        assert_eq!(denied.state, PoolSetupState::Unknown);
        assert!(denied.message.unwrap().contains("GetConsoleOutput"));
        let throttled = shown(&error(ErrorClass::Throttled));
        assert_eq!(throttled.state, PoolSetupState::SettingUp);
    }
}
