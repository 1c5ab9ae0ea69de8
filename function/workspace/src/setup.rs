//! Whether the software of a workspace is installed: `SoftwareReady`.
//!
//! A machine has an address minutes before its owner can import a package. A workspace is ready only
//! after its machine has reported the end of the setup.

use api::condition::SOFTWARE_READY;
use api::policy::BehaviourVersion;
use api::workspace::Phase;
use function_runtime::composite::Composite;
use function_runtime::object::Status;
use function_runtime::response::Condition;

use crate::cause::{Cause, Reason};
use crate::report::{self, Report};
use crate::tenant_text::bounded;

/// What is known about the setup of a workspace. Texts are messages for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    /// No machine runs.
    NotRunning,
    /// Nothing reports how the setup of the machine goes.
    Unreported,
    /// The setup has not ended yet.
    Going(String),
    /// A step of the setup failed. The text names the step and what to change.
    Failed(String),
    /// It is not known how the setup goes. The text says why.
    Unknown(String),
    /// The software is installed.
    Done,
    /// The image of the pods has the software.
    InImage,
}

/// Whether a workspace of this behaviour version is ready only once its software is installed.
pub fn is_awaited(version: BehaviourVersion) -> bool {
    match version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => false,
        BehaviourVersion::V3 => true,
    }
}

/// What the setup of a machine means for the time without use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Installation {
    /// It is not known, or the setup failed.
    #[default]
    Unknown,
    /// The setup goes on: nobody could use the machine yet.
    Going,
    /// The software is installed.
    Done,
}

impl Setup {
    /// The setup, as far as it matters for the time without use.
    pub fn installation(&self) -> Installation {
        match self {
            Self::Going(_) => Installation::Going,
            Self::Done => Installation::Done,
            Self::NotRunning
            | Self::Unreported
            | Self::Failed(_)
            | Self::Unknown(_)
            | Self::InImage => Installation::Unknown,
        }
    }

    /// Whether the last call called the software ready; none if it said nothing about it.
    pub fn was_ready(composite: Composite<'_>) -> Option<bool> {
        let observed = composite.condition(SOFTWARE_READY)?;
        Some(observed.status == Status::True)
    }

    /// `SoftwareReady` as the last call left it; none if no call has reported it.
    pub fn observed(composite: Composite<'_>) -> Option<Condition> {
        let observed = composite.condition(SOFTWARE_READY)?;
        let known = [
            Reason::NotRunning,
            Reason::NotReported,
            Reason::SettingUp,
            Reason::SetupFailed,
            Reason::SetupUnknown,
        ];
        let reason = known.iter().find(|r| r.as_str() == observed.reason);
        Some(match (observed.status, reason) {
            (Status::True, _) => Condition::is_true(SOFTWARE_READY, READY),
            (Status::False, Some(reason)) => {
                Condition::is_false(SOFTWARE_READY, reason.as_str(), said(observed.message))
            }
            (Status::Unknown | Status::False, _) => Condition::unknown(
                SOFTWARE_READY,
                Reason::SetupUnknown.as_str(),
                said(observed.message),
            ),
        })
    }

    /// The report about a workspace with this setup. `was_told` says whether an earlier call has
    /// reported `SoftwareReady`: it is told on every further call. `before` is the phase that the
    /// last call reported.
    #[must_use]
    pub fn reported(&self, mut report: Report, was_told: bool, before: Option<Phase>) -> Report {
        let (cause, phase) = match self {
            Self::NotRunning | Self::Unreported if !was_told => return report,
            Self::Done => {
                report.conditions.push(ready(READY));
                return report;
            }
            Self::InImage => {
                report.conditions.push(ready("InImage"));
                return report;
            }
            Self::NotRunning => (cause(Reason::NotRunning, NOT_RUNNING), Phase::Provisioning),
            Self::Unreported => {
                let unreported = Reason::NotReported.as_str();
                let unreported = Condition::unknown(SOFTWARE_READY, unreported, UNREPORTED);
                report.conditions.push(unreported);
                return report;
            }
            Self::Going(said) => (cause(Reason::SettingUp, said), Phase::Provisioning),
            Self::Failed(said) => (cause(Reason::SetupFailed, said), Phase::Failed),
            Self::Unknown(said) => (cause(Reason::SetupUnknown, said), Phase::Provisioning),
        };
        report.conditions.push(match self {
            Self::Unknown(_) => {
                let reason = cause.reason.as_str();
                Condition::unknown(SOFTWARE_READY, reason, cause.message.as_str())
            }
            _ => cause.condition(SOFTWARE_READY),
        });
        report.ready = false;
        if report.take_back_ready(phase) {
            report.status.message = Some(cause.message);
            let failed = report::phase_event(before, &report.status, String::new());
            report.events.extend(failed);
        }
        report
    }
}

const READY: &str = "Installed";
const NOT_RUNNING: &str = "no machine runs";
const UNREPORTED: &str = "nothing reports the setup of this machine: log in and read \
                          /var/log/gpu-workspace-setup.log";

fn ready(reason: &'static str) -> Condition {
    Condition::is_true(SOFTWARE_READY, reason)
}

fn cause(reason: Reason, said: &str) -> Cause {
    Cause::new(reason, said)
}

/// A message that an observed object has: it is not empty.
fn said(message: &str) -> String {
    match message {
        "" => NOT_RUNNING.to_owned(),
        message => bounded(message),
    }
}
