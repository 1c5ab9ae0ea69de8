//! `doctor`: checks what the other commands need.

use std::time::Duration;

use api::condition::{ACCESS_READY, BASTION_OUT_OF_REACH};
use api::workspace::Placement;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::commands::call::Call;
use crate::commands::{connect, proxy};
use crate::grammar::Doctor;
use crate::host::{Program, Scope};
use crate::name::Name;
use crate::object::Kind;
use crate::output::{self, Data, Format};
use crate::problem::Problem;
use crate::ssh::host_keys;
use crate::table::Table;
use crate::workspace::Workspace;

/// The difference of clocks from which on certificates and times mislead.
const SKEW: SignedDuration = SignedDuration::from_secs(60);
/// How long a workspace may take to answer at its port.
const ANSWER: Duration = Duration::from_secs(5);

/// The result of a check.
struct Check {
    what: &'static str,
    state: State,
    message: String,
    next: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Warning,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Bad => "failed",
        }
    }
}

impl Check {
    fn good(what: &'static str, message: impl Into<String>) -> Self {
        Self {
            what,
            state: State::Good,
            message: message.into(),
            next: None,
        }
    }

    fn not(
        what: &'static str,
        state: State,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            what,
            state,
            message: message.into(),
            next: Some(next.into()),
        }
    }
}

/// Checks this machine, the cluster, and a workspace. The exit code is 1 if a check fails.
pub(super) async fn doctor(call: Call<'_>, given: &Doctor) -> Result<u8, Problem> {
    let mut checks = vec![ssh(call).await, configuration(call), clock(call).await];
    checks.extend(rights(call).await);
    if let Some(name) = &given.name {
        checks.extend(workspace(call, name).await);
    }
    let rows: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({"check": check.what, "state": check.state.word(), "message": check.message, "next": check.next})
        })
        .collect();
    let value = json!({"checks": rows});
    let data = Data {
        table: &|_| {
            let mut table = Table::new(["CHECK", "STATE", "MESSAGE", "NEXT"]);
            for check in &checks {
                table.row([
                    Some(check.what.to_owned()),
                    Some(check.state.word().to_owned()),
                    Some(check.message.clone()),
                    check.next.clone(),
                ]);
            }
            table
        },
        value: &value,
        names: checks.iter().map(|check| check.what.to_owned()).collect(),
    };
    let format = if given.output.format == Format::Wide {
        Format::Table
    } else {
        given.output.format
    };
    output::write(call.host.terminal, format, &data)?;
    Ok(u8::from(
        checks.iter().any(|check| check.state == State::Bad),
    ))
}

async fn ssh(call: Call<'_>) -> Check {
    let ran = call
        .host
        .programs
        .capture(&Program::new("ssh", ["-V"]))
        .await;
    match ran {
        Ok(ran) if ran.code == 0 => Check::good(
            "ssh",
            ran.stderr
                .lines()
                .chain(ran.stdout.lines())
                .next()
                .unwrap_or("ssh"),
        ),
        Ok(ran) => Check::not(
            "ssh",
            State::Bad,
            format!("ssh -V ends with {}", ran.code),
            "install OpenSSH",
        ),
        Err(error) => Check::not("ssh", State::Bad, error.to_string(), "install OpenSSH"),
    }
}

fn configuration(call: Call<'_>) -> Check {
    let path = call.ssh_configuration();
    match call.host.files.read(&path) {
        Ok(Some(_)) => Check::good("ssh configuration", path.display().to_string()),
        Ok(None) => Check::not(
            "ssh configuration",
            State::Warning,
            "ssh and editors do not know NAME.ws",
            "devctl config-ssh --write",
        ),
        Err(error) => Check::not(
            "ssh configuration",
            State::Bad,
            error.to_string(),
            "check its permissions",
        ),
    }
}

async fn clock(call: Call<'_>) -> Check {
    match call.host.api.time().await {
        Ok(theirs) => {
            let skew = call.host.clock.now().duration_since(theirs).abs();
            if skew > SKEW {
                let message = format!(
                    "this clock and the API server's differ by {} s",
                    skew.as_secs()
                );
                Check::not(
                    "clock",
                    State::Warning,
                    message,
                    "set the clock of this machine",
                )
            } else {
                Check::good("clock", "as the API server's")
            }
        }
        Err(refused) => Check::not(
            "API server",
            State::Bad,
            refused.message,
            "check the network and --context",
        ),
    }
}

async fn rights(call: Call<'_>) -> Vec<Check> {
    let api = call.host.api;
    let namespace = api.namespace();
    let mut checks = Vec::new();
    match api
        .list(Kind::Claim, &Scope::Namespace(namespace.to_owned()))
        .await
    {
        Ok(claims) => checks.push(Check::good(
            "workspaces",
            format!("{} in {namespace}", claims.len()),
        )),
        Err(refused) if refused.is_absent() => checks.push(Check::not(
            "workspaces",
            State::Bad,
            "this cluster has no GpuDevWorkspaceClaim",
            "choose the platform's cluster with --context",
        )),
        Err(refused) => checks.push(Check::not(
            "workspaces",
            State::Bad,
            refused.message,
            "choose your namespace with --namespace",
        )),
    }
    for (verb, kind) in [
        ("create", Kind::Claim),
        ("patch", Kind::Claim),
        ("delete", Kind::Claim),
    ] {
        match api.may(verb, kind, namespace).await {
            Ok(true) => {}
            Ok(false) => checks.push(Check::not(
                "rights",
                State::Warning,
                format!("you may not {verb} {} in {namespace}", kind.plural()),
                "ask the platform team",
            )),
            Err(refused) => checks.push(Check::not(
                "rights",
                State::Bad,
                refused.message,
                "ask the platform team",
            )),
        }
    }
    checks
}

async fn workspace(call: Call<'_>, name: &Name) -> Vec<Check> {
    let claim = match call.claim(name).await {
        Ok(claim) => claim,
        Err(problem) => {
            let next = problem.next.unwrap_or_else(|| "devctl list".into());
            return vec![Check::not("workspace", State::Bad, problem.message, next)];
        }
    };
    let one = Workspace::new(&claim);
    let why = format!("devctl why {name}");
    let mut checks = vec![if one.is_ready() {
        Check::good("workspace", "it is Ready")
    } else {
        let message = format!("it is {}", one.phase_text());
        Check::not("workspace", State::Bad, message, &why)
    }];
    checks.extend(bastion(call, one));
    let host = connect::host(name);
    checks.push(match host_keys::pin("", &host, one) {
        Ok(_) => Check::good("host key", "the platform knows it"),
        Err(problem) => Check::not(
            "host key",
            State::Bad,
            problem.message,
            problem.next.unwrap_or_default(),
        ),
    });
    checks.push(match proxy::destination(one, &host) {
        Err(problem) => Check::not("connection", State::Bad, problem.message, &why),
        Ok(destination) => match call.host.reach.answers(&host, &destination, ANSWER).await {
            Ok(()) => Check::good("connection", "port 22 answers"),
            Err(error) => Check::not(
                "connection",
                State::Bad,
                format!("port 22 does not answer: {error}"),
                way_in(call, one),
            ),
        },
    });
    checks
}

/// Whether the policy of the workspace admits the bastion by which devctl works; none without one, and
/// where the platform does not say it.
fn bastion(call: Call<'_>, one: Workspace<'_>) -> Option<Check> {
    call.shared.bastion.as_ref()?;
    let access = one.condition(ACCESS_READY)?;
    if access.reason == BASTION_OUT_OF_REACH {
        let next = way_in(call, one);
        return Some(Check::not("bastion", State::Bad, access.message, next));
    }
    let admitted = || Check::good("bastion", "the policy of the workspace admits it");
    access.is_true().then(admitted)
}

/// Who has to do what, so that port 22 answers.
fn way_in(call: Call<'_>, one: Workspace<'_>) -> String {
    if call.shared.bastion.is_none() {
        return "add your network to spec.parameters.ssh.allowedCidrs, or use the VPN of the platform"
            .to_owned();
    }
    let fields = match one.placement() {
        Placement::Ec2 => "bastion.cidrs or bastion.securityGroupId",
        Placement::Cluster => "bastion.namespace and bastion.podLabels",
    };
    format!(
        "ask the platform team: only they can let the bastion connect, by {fields} in the \
         WorkspacePolicy"
    )
}
