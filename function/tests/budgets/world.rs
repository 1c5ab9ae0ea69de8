//! A simulation of a `DevUser`, the user's workspaces and a cloud. Crossplane reconciles the user
//! and each workspace separately, from reads that may be behind. The cloud runs the machines that
//! the pools ask for.

use std::collections::BTreeMap;

use function_gpu_workspace::kinds::render;
use function_runtime::request::Request;
use function_runtime::requirement::Selector;
use function_runtime::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::dice::Dice;

/// The price of the machines, on demand and spot, in US dollars per hour.
pub const ON_DEMAND: f64 = 1.0;
const SPOT: f64 = 0.4;
const NAMESPACE: &str = "dev-dave";
/// No read is further behind than this.
const BEHIND: SignedDuration = SignedDuration::from_secs(2);

/// An object with all its versions. All readers see the same version, which may be behind the
/// latest.
#[derive(Clone)]
pub struct Object {
    versions: Vec<(Timestamp, Value)>,
    seen: usize,
}

impl Object {
    fn new(at: Timestamp, value: Value) -> Self {
        Self {
            versions: vec![(at, value)],
            seen: 0,
        }
    }

    /// The latest version.
    pub fn latest(&self) -> &Value {
        &self.versions.last().unwrap().1
    }

    /// Changes the latest version, without a check of the version that the writer read.
    pub fn change(&mut self, at: Timestamp, change: impl FnOnce(&mut Value)) {
        let mut value = self.latest().clone();
        change(&mut value);
        if value != *self.latest() {
            self.versions.push((at, value));
        }
    }

    fn read(&mut self, now: Timestamp, dice: &mut Dice) -> Value {
        let last = self.versions.len() - 1;
        while self.seen < last {
            let next = self.versions[self.seen + 1].0;
            let is_due = now.duration_since(next) >= BEHIND;
            if !is_due && dice.percent(40) {
                break;
            }
            self.seen += 1;
        }
        self.versions[self.seen].1.clone()
    }
}

pub struct Workspace {
    /// Its composite.
    pub xr: Object,
    /// The pool, as the function composed it.
    pub pool: Option<Value>,
    /// The machine, while one runs.
    machine: Option<Machine>,
    /// US dollars that the machines of this workspace really cost.
    pub spent: f64,
    /// Whether the user deleted the claim.
    pub deleted: bool,
    /// An answer of the function that Crossplane has not applied yet.
    answer: Option<Response>,
}

#[derive(Clone, Copy)]
struct Machine {
    from: Timestamp,
    spot: bool,
}

/// The state of the simulation.
pub struct World {
    pub now: Timestamp,
    pub dice: Dice,
    pub user: Object,
    pub workspaces: Vec<Workspace>,
    /// US dollars that deleted workspaces really cost.
    pub gone: f64,
    /// The number of runs that started.
    pub launches: u32,
    /// The highest budget so far.
    pub highest: f64,
    answer: Option<Response>,
    made: usize,
}

impl World {
    pub fn new(seed: u64, budget: f64) -> Self {
        let now = "2026-11-20T10:00:00Z".parse().unwrap();
        let user = json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "DevUser",
            "metadata": {"name": "dave", "uid": "u-dave"},
            "spec": {"budget": {"monthlyUsd": budget}},
        });
        Self {
            now,
            dice: Dice::new(seed),
            user: Object::new(now, user),
            workspaces: Vec::new(),
            gone: 0.0,
            launches: 0,
            highest: budget,
            answer: None,
            made: 0,
        }
    }

    /// Creates a claim for a run of this many hours.
    pub fn claim(&mut self, hours: usize) {
        self.made += 1;
        let name = format!("w{}", self.made);
        let xr = json!({
            "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace",
            "metadata": {"name": format!("{name}-x"), "uid": format!("u-{name}"),
                "labels": {"crossplane.io/claim-namespace": NAMESPACE}},
            "spec": {
                "claimRef": {"namespace": NAMESPACE, "name": name},
                "parameters": {"owner": "dave", "instanceType": "g5.xlarge",
                    "lifecycle": {"maxLifetime": format!("{hours}h")}},
            },
        });
        self.workspaces.push(Workspace {
            xr: Object::new(self.now, xr),
            pool: None,
            machine: None,
            spent: 0.0,
            deleted: false,
            answer: None,
        });
    }

    pub fn set_budget(&mut self, budget: f64) {
        self.highest = self.highest.max(budget);
        let now = self.now;
        self.user.change(now, |user| {
            user["spec"]["budget"]["monthlyUsd"] = json!(budget);
        });
    }

    pub fn budget(&self) -> f64 {
        self.user.latest()["spec"]["budget"]["monthlyUsd"]
            .as_f64()
            .unwrap()
    }

    /// Lets time pass. Each running machine costs money meanwhile.
    pub fn pass(&mut self, time: SignedDuration) {
        let hours = time.as_secs_f64() / 3_600.0;
        self.now += time;
        for workspace in &mut self.workspaces {
            if let Some(machine) = workspace.machine {
                workspace.spent += hours * if machine.spot { SPOT } else { ON_DEMAND };
            }
        }
        self.cloud();
    }

    /// Starts and stops machines as their pools ask, each with some chance. EC2 may also interrupt
    /// a spot machine.
    fn cloud(&mut self) {
        let now = self.now;
        for workspace in &mut self.workspaces {
            let wants = !workspace.deleted && workspace.is_on();
            match workspace.machine {
                None if wants && self.dice.percent(70) => {
                    let spot = self.dice.percent(50);
                    workspace.machine = Some(Machine { from: now, spot });
                }
                Some(_) if !wants && self.dice.percent(70) => workspace.machine = None,
                Some(machine) if machine.spot && self.dice.percent(2) => workspace.machine = None,
                _ => {}
            }
        }
        let (gone, there): (Vec<_>, Vec<_>) = std::mem::take(&mut self.workspaces)
            .into_iter()
            .partition(|w| w.deleted && w.machine.is_none());
        self.gone += gone.iter().map(|w| w.spent).sum::<f64>();
        self.workspaces = there;
    }

    /// Calls the function for a workspace. The next call of this method applies the answer.
    pub fn reconcile(&mut self, which: usize) {
        if let Some(answer) = self.workspaces[which].answer.take() {
            self.apply(which, answer);
        } else {
            let request = self.request(which);
            self.workspaces[which].answer = Some(render(&request));
        }
    }

    fn request(&mut self, which: usize) -> Request<'static> {
        let user = self.user.read(self.now, &mut self.dice);
        let workspace = &mut self.workspaces[which];
        let xr = workspace.xr.read(self.now, &mut self.dice);
        let observed = workspace.observed();
        Request {
            policy: Some(policy()),
            composite: Some(xr.into()),
            observed: observed
                .map(|pool| BTreeMap::from([("pool".to_owned(), pool.into())]))
                .unwrap_or_default(),
            required: [
                ("catalogue".to_owned(), vec![catalogue().into()]),
                ("dev-user".to_owned(), vec![user.into()]),
            ]
            .into(),
            others_decide_readiness: false,
            now: self.now,
        }
    }

    fn apply(&mut self, which: usize, answer: Response) {
        let workspace = &mut self.workspaces[which];
        if workspace.deleted {
            return;
        }
        let desired = answer
            .desired
            .unwrap_or_else(|| panic!("{:?}", answer.conditions));
        let was_on = workspace.is_on();
        workspace.pool = desired
            .resources
            .get("pool")
            .map(|pool| pool.object.clone());
        let launched = !was_on && workspace.is_on();
        let status = Value::Object(desired.status);
        workspace.xr.change(self.now, |xr| xr["status"] = status);
        if launched {
            self.launches += 1;
        }
    }

    /// Calls the function for the user. The next call of this method applies the answer, because
    /// Crossplane finishes one reconcile of an object before it begins the next one.
    pub fn reconcile_user(&mut self) {
        if let Some(answer) = self.answer.take() {
            let status = Value::Object(answer.desired.unwrap().status);
            return self.user.change(self.now, |user| user["status"] = status);
        }
        let user = self.user.read(self.now, &mut self.dice);
        let (now, dice) = (self.now, &mut self.dice);
        let found = self
            .workspaces
            .iter_mut()
            .map(|w| w.xr.read(now, dice).into());
        let request = Request {
            policy: Some(json!({
                "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
                "kind": "DevUserPolicy", "behaviourVersion": "v2", "budgets": {},
            })),
            composite: Some(user.into()),
            required: [
                ("homes".to_owned(), Vec::new()),
                ("workspaces".to_owned(), found.collect()),
            ]
            .into(),
            now,
            ..Request::default()
        };
        let answer = render(&request);
        let claimed = Selector::Claimed {
            namespace: NAMESPACE.to_owned(),
        };
        assert!(answer.requirements.iter().any(|r| r.selector == claimed));
        self.answer = Some(answer);
    }

    /// Lets minutes pass. In each minute, Crossplane calls the function once for the user and once
    /// for every workspace, and applies the answers.
    pub fn wait(&mut self, minutes: i64) {
        for _ in 0..minutes {
            self.pass(SignedDuration::from_mins(1));
            for _ in 0..2 {
                self.reconcile_user();
                for which in 0..self.workspaces.len() {
                    self.reconcile(which);
                }
            }
        }
    }

    /// Lets 84 seconds pass and reconciles everything many times, so that the state comes to rest.
    pub fn settle(&mut self) {
        for _ in 0..12 {
            self.pass(SignedDuration::from_secs(7));
            for _ in 0..2 {
                self.reconcile_user();
                for which in 0..self.workspaces.len() {
                    self.reconcile(which);
                }
            }
        }
    }

    /// The US dollars that are spent, and those that running workspaces may still spend. A granted
    /// run counts with its grant, any other run with its request.
    pub fn committed(&self) -> f64 {
        let user = &self.user.latest()["status"]["budget"];
        let one = |workspace: &Workspace| {
            let xr = workspace.xr.latest();
            let cost = &xr["status"]["cost"];
            let request = &xr["status"]["internal"]["budgetRequest"];
            let usd = |value: &Value| value.as_f64().unwrap_or(0.0);
            let spent = usd(&cost["soFarUsd"]);
            if !workspace.is_on() {
                return spent;
            }
            let asked = spent + usd(&request["usd"]);
            let key = format!("{NAMESPACE}/{}", xr["metadata"]["name"].as_str().unwrap());
            let grant = &user["grants"][&key];
            if grant["madeAt"] == request["madeAt"] {
                asked.min(usd(&grant["usd"])).max(spent)
            } else {
                asked
            }
        };
        self.gone + self.workspaces.iter().map(one).sum::<f64>()
    }

    /// A description of the state, for a failure message.
    pub fn shown(&self) -> String {
        let one = |w: &Workspace| {
            let status = &w.xr.latest()["status"];
            format!(
                "{} on {} runs {} deleted {} spent {:.3} {} {} {} {}\n",
                w.xr.latest()["metadata"]["name"],
                w.is_on(),
                w.runs(),
                w.deleted,
                w.spent,
                status["cost"],
                status["internal"],
                status["lifecycle"],
                status["message"]
            )
        };
        let workspaces: String = self.workspaces.iter().map(one).collect();
        let user = &self.user.latest()["status"]["budget"];
        format!("{} gone {:.3}\n{workspaces}{user}", self.now, self.gone)
    }

    /// The US dollars that all workspaces really cost.
    pub fn spent(&self) -> f64 {
        self.gone + self.workspaces.iter().map(|w| w.spent).sum::<f64>()
    }
}

impl Workspace {
    /// Whether the pool asks for a machine.
    pub fn is_on(&self) -> bool {
        let size = |pool: &Value| pool.pointer("/spec/forProvider/size/minimum")?.as_i64();
        self.pool.as_ref().and_then(size).unwrap_or(0) > 0
    }

    /// Whether a machine runs.
    pub fn runs(&self) -> bool {
        self.machine.is_some()
    }

    /// The message in the composite's status.
    pub fn message(&self) -> &str {
        self.xr.latest()["status"]["message"].as_str().unwrap_or("")
    }

    fn observed(&self) -> Option<Value> {
        let mut pool = self.pool.clone()?;
        let condition = |name: &str| {
            json!({"type": name, "status": "True", "reason": "x",
                "lastTransitionTime": "2026-11-20T10:00:00Z"})
        };
        let instances = self.machine.map(|machine| {
            json!({"id": format!("i-{}", machine.from.as_second()), "launch": 1,
                "instanceType": "g5.xlarge", "zone": "us-east-1a", "imageId": "ami-1",
                "capacityType": if machine.spot { "Spot" } else { "OnDemand" },
                "state": "running", "publicIp": "198.51.100.1"})
        });
        pool["metadata"]["name"] = json!("pool");
        pool["status"] = json!({
            "conditions": [condition("Ready"), condition("Synced")],
            "atProvider": {"instances": instances.into_iter().collect::<Vec<_>>()},
        });
        Some(pool)
    }
}

fn policy() -> Value {
    json!({
        "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
        "kind": "WorkspacePolicy", "behaviourVersion": "v2",
        "catalogue": {"name": "gpu-workspaces"},
        "allowedInstanceTypes": ["g5.*"],
        "budgets": {},
        "lifecycle": {"maxExtension": "2h"},
    })
}

fn catalogue() -> Value {
    json!({"data": {
        "images": {"us-east-1": {"default": {"id": "ami-1"}}},
        "prices": {
            "asOf": "2026-11-01",
            "hourlyUsd": {"us-east-1": {"g5.xlarge": ON_DEMAND}},
            "spotHourlyUsd": {"us-east-1": {"g5.xlarge": SPOT}},
        },
    }})
}
