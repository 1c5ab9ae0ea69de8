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

use crate::cause::Reason;
use crate::report::Report;
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
    /// The setup goes on. The owner cannot use the machine yet.
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

    /// The report about a workspace with this setup. `was_told` says whether the last call reported
    /// `SoftwareReady`: a condition that was reported once is reported on every further call. `before`
    /// is the phase that the last call reported.
    #[must_use]
    pub fn reported(&self, mut report: Report, was_told: bool, before: Option<Phase>) -> Report {
        if !was_told && matches!(self, Self::NotRunning | Self::Unreported) {
            return report;
        }
        let condition = self.condition();
        if let Some(phase) = self.phase() {
            report.hold_back(phase, condition.message.clone(), before);
        }
        report.with(condition)
    }

    fn condition(&self) -> Condition {
        let is_false =
            |reason: Reason, said: &str| Condition::is_false(SOFTWARE_READY, reason.as_str(), said);
        let unknown =
            |reason: Reason, said: &str| Condition::unknown(SOFTWARE_READY, reason.as_str(), said);
        match self {
            Self::Done => Condition::is_true(SOFTWARE_READY, READY),
            Self::InImage => Condition::is_true(SOFTWARE_READY, "InImage"),
            Self::NotRunning => is_false(Reason::NotRunning, NOT_RUNNING),
            Self::Going(said) => is_false(Reason::SettingUp, said),
            Self::Failed(said) => is_false(Reason::SetupFailed, said),
            Self::Unreported => unknown(Reason::NotReported, UNREPORTED),
            Self::Unknown(said) => unknown(Reason::SetupUnknown, said),
        }
    }

    /// The phase instead of `Ready`; none if the workspace may be ready.
    fn phase(&self) -> Option<Phase> {
        match self {
            Self::Done | Self::InImage | Self::Unreported => None,
            Self::Failed(_) => Some(Phase::Failed),
            Self::NotRunning | Self::Going(_) | Self::Unknown(_) => Some(Phase::Provisioning),
        }
    }
}

const READY: &str = "Installed";
const NOT_RUNNING: &str = "no machine runs";
const UNREPORTED: &str = "nothing reports the setup of this machine: log in and read \
                          /var/log/gpu-workspace-setup.log";

/// A message that an observed object has: it is not empty.
fn said(message: &str) -> String {
    match message {
        "" => NOT_RUNNING.to_owned(),
        message => bounded(message),
    }
}
