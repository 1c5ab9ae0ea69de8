//! Who can change what, for each reason of docs/conditions.md.

/// Who can change a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The owner of the workspace.
    You,
    /// The platform team only.
    Platform,
    /// Nobody has to: it passes.
    Time,
}

impl Who {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Platform => "the platform team",
            Self::Time => "nobody: it passes by itself",
        }
    }

    /// For programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::You => "You",
            Self::Platform => "PlatformTeam",
            Self::Time => "Nobody",
        }
    }
}

/// What a reason of a condition means for the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The condition.
    pub condition: &'static str,
    /// Its reason.
    pub reason: &'static str,
    /// Who can change it.
    pub who: Who,
    /// What to do. `{name}`, `{namespace}`, `{edit}` and `{keep}` are filled in.
    pub next: &'static [&'static str],
    /// Whether the platform refuses the claim as it is. It does not pass by itself.
    pub is_refusal: bool,
}

/// The rule for a reason of a condition; none for a reason that this devctl does not know.
pub fn rule(condition: &str, reason: &str) -> Option<&'static Rule> {
    let fits = |rule: &&Rule| rule.condition == condition && rule.reason == reason;
    RULES.iter().find(fits)
}

const fn rule_of(
    condition: &'static str,
    reason: &'static str,
    who: Who,
    next: &'static [&'static str],
) -> Rule {
    Rule {
        condition,
        reason,
        who,
        next,
        is_refusal: false,
    }
}

const fn you(condition: &'static str, reason: &'static str, next: &'static [&'static str]) -> Rule {
    rule_of(condition, reason, Who::You, next)
}

const fn platform(condition: &'static str, reason: &'static str) -> Rule {
    rule_of(condition, reason, Who::Platform, &[])
}

const fn passes(condition: &'static str, reason: &'static str) -> Rule {
    rule_of(condition, reason, Who::Time, &["devctl show {name}"])
}

const fn refusal(rule: Rule) -> Rule {
    Rule {
        is_refusal: true,
        ..rule
    }
}

const CONFIG: &str = "ConfigResolved";
const ACCESS: &str = "AccessReady";
const COMPUTE: &str = "ComputeReady";
const SOFTWARE: &str = "SoftwareReady";
const HOME: &str = "HomeReady";
const BUDGET: &str = "WithinBudget";
const ADMITTED: &str = "Admitted";

/// Every rule.
pub static RULES: &[Rule] = &[
    refusal(you(CONFIG, "ParametersInvalid", &["{edit}"])),
    refusal(platform(CONFIG, "PolicyInvalid")),
    refusal(you(CONFIG, "NameTaken", &["devctl create ANOTHER-NAME"])),
    refusal(you(
        CONFIG,
        "CompositeInvalid",
        &["devctl create, in your namespace"],
    )),
    refusal(platform(CONFIG, "CatalogueMissing")),
    refusal(platform(CONFIG, "CatalogueInvalid")),
    refusal(platform(CONFIG, "LimitsMissing")),
    refusal(platform(CONFIG, "LimitsInvalid")),
    refusal(platform(CONFIG, "ImageMissing")),
    refusal(platform(CONFIG, "NetworkIncomplete")),
    refusal(platform(CONFIG, "PriceMissing")),
    rule_of(
        CONFIG,
        "NamespaceUnresolved",
        Who::Time,
        &[
            "wait a minute; if it lasts, tell the platform team that Crossplane cannot read the Namespace",
        ],
    ),
    refusal(you(CONFIG, "FlavorMissing", &["devctl flavors", "{edit}"])),
    refusal(platform(CONFIG, "FlavorInvalid")),
    platform(CONFIG, "ResourceUnreadable"),
    platform(CONFIG, "Unwritable"),
    passes(CONFIG, "CatalogueUnresolved"),
    passes(CONFIG, "LimitsUnresolved"),
    passes(CONFIG, "FlavorUnresolved"),
    passes(CONFIG, "DevUserUnresolved"),
    refusal(you(
        ACCESS,
        "NoPublicKeys",
        &[
            "{edit}: add your public key, a line of ~/.ssh/id_ed25519.pub, to spec.parameters.ssh.publicKeys",
        ],
    )),
    refusal(you(
        ACCESS,
        "NoNetworks",
        &[
            "{edit}: add your network, for example 203.0.113.0/24, to spec.parameters.ssh.allowedCidrs",
        ],
    )),
    refusal(platform(ACCESS, "BastionOutOfReach")),
    refusal(platform(ACCESS, "OwnerSuspended")),
    passes(SOFTWARE, "SettingUp"),
    you(
        SOFTWARE,
        "SetupFailed",
        &[
            "devctl ssh {name} -- tail -n 50 /var/log/gpu-workspace-setup.log",
            "{edit}: another opencvVersion or pytorchVersion, if the message names one",
        ],
    ),
    passes(SOFTWARE, "NotRunning"),
    you(
        SOFTWARE,
        "SetupUnknown",
        &["devctl ssh {name} -- tail -n 50 /var/log/gpu-workspace-setup.log"],
    ),
    platform(SOFTWARE, "NotReported"),
    passes(COMPUTE, "ConfigUnresolved"),
    passes(COMPUTE, "Creating"),
    you(
        COMPUTE,
        "Capacity",
        &[
            "wait: the provider tries again by itself",
            "{edit}: accept more instanceTypes, or capacityType: SpotWithFallback",
        ],
    ),
    platform(COMPUTE, "Quota"),
    platform(COMPUTE, "Denied"),
    platform(COMPUTE, "Configuration"),
    passes(COMPUTE, "Throttled"),
    passes(COMPUTE, "Transient"),
    passes(COMPUTE, "Interrupted"),
    platform(COMPUTE, "Stopped"),
    you(COMPUTE, "Idle", &["devctl start {name}"]),
    you(COMPUTE, "Expired", &["devctl start {name}"]),
    passes(COMPUTE, "Stopping"),
    passes(COMPUTE, "Starting"),
    passes(COMPUTE, "Deleting"),
    platform(COMPUTE, "ReconcileError"),
    platform(COMPUTE, "StatusUnreadable"),
    passes(COMPUTE, "PodMissing"),
    passes(COMPUTE, "PodEnding"),
    passes(COMPUTE, "ContainerEnded"),
    you(
        COMPUTE,
        "Unschedulable",
        &["wait for a node, or choose another flavor: devctl flavors"],
    ),
    platform(COMPUTE, "ImageUnavailable"),
    platform(COMPUTE, "CrashLooping"),
    platform(COMPUTE, "ContainerFails"),
    rule_of(
        COMPUTE,
        "HomeUnbound",
        Who::Time,
        &["wait a minute; if it lasts, ask the platform team for a StorageClass"],
    ),
    passes(COMPUTE, "WaitingForHome"),
    passes(COMPUTE, "PodGated"),
    passes(HOME, "Waiting"),
    passes(HOME, "Creating"),
    passes(HOME, "Attaching"),
    passes(HOME, "Detaching"),
    passes(HOME, "Detached"),
    platform(HOME, "Lost"),
    platform(HOME, "Denied"),
    platform(HOME, "Quota"),
    platform(HOME, "Configuration"),
    passes(HOME, "Throttled"),
    passes(HOME, "Transient"),
    passes(HOME, "Capacity"),
    you(
        ADMITTED,
        "Pending",
        &["wait for your turn, or stop another workspace of yours: devctl list"],
    ),
    you(
        ADMITTED,
        "Preempted",
        &["wait: it starts again when there is quota"],
    ),
    platform(ADMITTED, "Deactivated"),
    passes(ADMITTED, "Stopped"),
    you(
        BUDGET,
        "BudgetExceeded",
        &[
            "stop another workspace of yours: devctl cost",
            "{edit}: a shorter lifecycle.maxLifetime",
            "ask the platform team for a higher budget",
        ],
    ),
    passes(BUDGET, "BudgetPending"),
    platform(BUDGET, "BudgetMissing"),
    refusal(platform(BUDGET, "OtherNamespace")),
    platform(BUDGET, "PriceMissing"),
    you("StopScheduled", "StopsWithin30Minutes", &["{keep}"]),
    you("StopScheduled", "StopsWithin5Minutes", &["{keep}"]),
    you(
        "Interrupting",
        "InterruptionWarning",
        &["save your work now; another machine follows by itself"],
    ),
    you("Stop", "Idle", &["devctl start {name}"]),
    you("Stop", "MaxLifetime", &["devctl start {name}"]),
    you("Stop", "Requested", &["devctl start {name}"]),
    you("Stop", "State", &["{edit}: lifecycle.state: Running"]),
    passes("Deletion", "Deleting"),
    platform("Synced", "ReconcileError"),
    platform("Synced", "ReconcilePaused"),
    platform("Event", "Warning"),
    platform("Rendering", "NotRendered"),
];
