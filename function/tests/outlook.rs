//! The preview of a claim tells the same as the function's decision about the claim that exists.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs;

use function_gpu_workspace::kinds::KINDS;
use function_preview::outlook::{Changed, Outlook};
use function_preview::platform::Platform;
use function_preview::selection::selects;
use function_preview::wish::{self, outlook};
use function_preview::{Effect, composed};
use function_runtime::requirement::Requirement;
use futures::executor::block_on;
use serde_json::{Value, json};

/// The platform of a case: its policy, and what Crossplane has fetched.
struct OfCase<'a> {
    request: &'a Value,
    /// Workspaces of the cluster, which a budget counts.
    others: Vec<Value>,
}

impl Platform for OfCase<'_> {
    type Error = Infallible;

    fn policy(&self, kind: &str, _: &Value) -> Option<Value> {
        match kind {
            "WorkspacePolicy" => self
                .request
                .get("input")
                .filter(|input| !input.is_null())
                .cloned(),
            _ => Some(json!({
                "apiVersion": "workspace.fn.platform.acme.io/v1alpha1", "kind": kind,
                "behaviourVersion": "v3", "budgets": {},
            })),
        }
    }

    async fn select(&self, requirement: &Requirement) -> Result<Vec<Value>, Infallible> {
        let others = self
            .others
            .iter()
            .filter(|one| one["kind"] == requirement.kind);
        let others = others.filter(|one| selects(requirement, one)).cloned();
        Ok(fetched(self.request, &requirement.name)
            .chain(others)
            .collect())
    }
}

/// What Crossplane has fetched for a requirement of a case.
fn fetched<'a>(request: &'a Value, name: &str) -> impl Iterator<Item = Value> + 'a {
    let items = request["requiredResources"][name]["items"].as_array();
    items
        .into_iter()
        .flatten()
        .map(|item| item["resource"].clone())
}

/// The composed resources of a case.
fn observed(request: &Value) -> BTreeMap<String, Value> {
    let observed = request["observed"]["resources"].as_object();
    let observed = observed.into_iter().flatten();
    observed
        .map(|(name, one)| (name.clone(), one["resource"].clone()))
        .collect()
}

/// What a change of the parameters of a case's workspace does.
fn changed(name: &str, patch: &Value) -> Changed {
    let request = case::request_json(name);
    let before = &request["observed"]["composite"]["resource"];
    let mut after = before.clone();
    for (field, value) in patch.as_object().unwrap() {
        after["spec"]["parameters"][field] = value.clone();
    }
    let platform = OfCase {
        request: &request,
        others: Vec::new(),
    };
    let observed = observed(&request);
    block_on(wish::change(
        &platform,
        KINDS,
        case::now(),
        (before, &after),
        &observed,
    ))
    .unwrap()
}

fn of(request: &Value, others: Vec<Value>) -> Outlook {
    let composite = &request["observed"]["composite"]["resource"];
    let observed = observed(request);
    let platform = OfCase { request, others };
    // Crossplane has fetched the limits for a function that has them.
    let has_limits = request["requiredResources"].get("limits").is_some();
    let kinds = if has_limits { case::limited() } else { KINDS };
    block_on(outlook(&platform, kinds, case::now(), composite, &observed)).unwrap()
}

/// The golden answer of a case.
fn golden(name: &str) -> Value {
    let path = case::folder().join(name).join("response.yaml");
    serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn condition<'a>(answer: &'a Value, type_: &str) -> Option<&'a Value> {
    let mut all = answer["conditions"].as_array()?.iter();
    all.find(|condition| condition["type"] == type_)
}

/// Whether Crossplane has fetched everything that the function requires in a case.
fn is_resolved(request: &Value, answer: &Value) -> bool {
    let required = answer["requirements"]["resources"].as_object();
    let mut names = required.into_iter().flatten().map(|(name, _)| name);
    names.all(|name| request["requiredResources"].get(name).is_some())
}

#[test]
fn what_is_told_is_what_the_function_decides() {
    let mut seen = 0;
    for name in case::names() {
        let (request, answer) = (case::request_json(&name), golden(&name));
        let asked = "/desired/composite/resource/status/internal/budgetRequest";
        let asks_a_budget = answer.pointer(asked).is_some();
        let has_origin =
            request["observed"]["composite"]["resource"]["spec"]["claimRef"].is_object();
        // The budget's own decision has tests of its own.
        if !case::is_workspace(&name)
            || !is_resolved(&request, &answer)
            || asks_a_budget
            || !has_origin
        {
            continue;
        }
        seen += 1;
        let told = of(&request, Vec::new());
        let config = condition(&answer, "ConfigResolved").unwrap();
        let message = config["message"].as_str().unwrap_or_default();
        let runs_on = message.starts_with("if it stops, it cannot start again");
        let names_a_field = message.starts_with("spec.") || message.starts_with("metadata.name: ");
        if names_a_field && answer["desired"].is_object() && !runs_on {
            let errors = told
                .errors
                .iter()
                .map(|one| format!("{}: {}", one.path, one.problem));
            assert_eq!(errors.collect::<Vec<_>>().join("; "), message, "{name}");
        } else {
            assert_eq!(told.errors, [], "{name}");
        }
        let is_refused = config["status"] != "STATUS_CONDITION_TRUE";
        if is_refused && told.errors.is_empty() {
            let obstacle = told.obstacle.as_ref().unwrap_or_else(|| panic!("{name}"));
            assert_eq!(obstacle.message, message, "{name}");
        }
        let resources = answer["desired"]["resources"].as_object();
        let resources = resources.into_iter().flatten();
        // Other steps of the pipeline may make something as well.
        let resources = resources.filter(|(name, _)| case::own_names::is_own(name));
        let expected = resources.map(|(_, one)| {
            let object = &one["resource"];
            let name = object["metadata"]["name"].as_str().map(str::to_owned);
            (object["kind"].as_str().unwrap().to_owned(), name)
        });
        let mut expected: Vec<_> = expected.collect();
        expected.sort();
        let made = told
            .resources
            .into_iter()
            .map(|made| (made.kind, made.name));
        assert_eq!(made.collect::<Vec<_>>(), expected, "{name}");
        let types: BTreeSet<String> = machines_of(&answer);
        let machines = told.machines.into_iter().map(|machine| machine.name);
        assert_eq!(machines.collect::<BTreeSet<_>>(), types, "{name}");
    }
    assert!(seen > 150, "{seen} cases");
}

/// The instance types, or the flavor of pods, in a golden answer.
fn machines_of(answer: &Value) -> BTreeSet<String> {
    let pods = answer.pointer("/desired/composite/resource/status/pods/flavor");
    if let Some(flavor) = pods.and_then(Value::as_str) {
        return BTreeSet::from([flavor.to_owned()]);
    }
    let resources = answer["desired"]["resources"].as_object();
    let resources = resources.into_iter().flatten().map(|(_, one)| one);
    let of_machine = |one: &Value| {
        let wanted = one.pointer("/resource/spec/forProvider")?;
        let types = wanted
            .get("instanceTypes")
            .and_then(Value::as_array)
            .cloned();
        types.or_else(|| Some(vec![wanted.get("instanceType")?.clone()]))
    };
    let types = resources.filter_map(of_machine).flatten();
    types
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// The claim of a case with changes, as a person would send it, on a platform with prices.
fn wished(changes: &[(&str, Value)]) -> Outlook {
    let mut request = asking();
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        request.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    of(&request, Vec::new())
}

/// A claim in the namespace that the owner's budget counts.
fn asking() -> Value {
    let mut request = case::request_json("budget-asks");
    let composite = request.pointer_mut("/observed/composite/resource").unwrap();
    composite["metadata"]["labels"] = json!({"crossplane.io/claim-namespace": "dev-alice"});
    composite["spec"]["claimRef"]["namespace"] = json!("dev-alice");
    request
}

const PARAMETERS: &str = "/observed/composite/resource/spec/parameters";
const BUDGET: &str = "/requiredResources/dev-user/items/0/resource";

#[test]
fn a_workspace_that_the_budget_has_room_for_is_told_with_its_price_and_its_stop() {
    let told = wished(&[]);
    assert_eq!((told.errors, told.obstacle), (vec![], None));
    let machines: Vec<_> = told
        .machines
        .iter()
        .map(|one| (&*one.name, one.hourly_usd))
        .collect();
    assert_eq!(machines, [("g4dn.xlarge", Some(0.526))]);
    assert_eq!((told.hourly_usd, told.run_usd), (Some(0.526), Some(4.208)));
    assert_eq!(told.limits.unwrap().max_lifetime.as_deref(), Some("8h"));
    let budget = told.budget.unwrap();
    assert_eq!(
        (budget.monthly_usd, budget.spent_usd, budget.reserved_usd),
        (100.0, 60.0, 20.0)
    );
    assert!(budget.is_granted);
    let kinds: Vec<_> = told.resources.iter().map(|made| &*made.kind).collect();
    assert_eq!(kinds, ["SpotPool"]);
}

#[test]
fn a_workspace_beyond_the_budget_is_told_what_is_missing() {
    let request = asking();
    let running = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspace",
        "metadata": {
            "name": "alice-other", "uid": "u-other",
            "labels": {"crossplane.io/claim-namespace": "dev-alice"},
        },
        "spec": {
            "claimRef": {"namespace": "dev-alice", "name": "other"},
            "parameters": {"owner": "alice"},
        },
        "status": {
            "owner": "alice", "phase": "Ready",
            "cost": {
                "asOf": "2026-11-01", "hourlyUsd": 1, "month": "2026-11", "projectedUsd": 0,
                "soFarUsd": 98, "source": "Catalogue",
            },
        },
    });
    let told = of(&request, vec![running]);
    let obstacle = told.obstacle.unwrap();
    assert_eq!(obstacle.reason, "BudgetExceeded", "{}", obstacle.message);
    assert!(!told.budget.unwrap().is_granted);
    assert_eq!(told.hourly_usd, Some(0.526));
    // With a larger budget, the same workspace starts.
    let mut request = request;
    request.pointer_mut(BUDGET).unwrap()["spec"]["budget"]["monthlyUsd"] = json!(1000);
    assert_eq!(of(&request, Vec::new()).obstacle, None);
}

#[test]
fn a_workspace_that_no_budget_counts_does_not_start() {
    let told = of(&case::request_json("budget-asks"), Vec::new());
    assert_eq!(told.obstacle.unwrap().reason, "OtherNamespace");
}

#[test]
fn each_wrong_field_is_named() {
    for (field, value, path) in [
        (
            "instanceType",
            json!("p5.48xlarge"),
            "spec.parameters.instanceType",
        ),
        ("region", json!("eu-north-1"), "spec.parameters.region"),
    ] {
        let told = wished(&[(&format!("{PARAMETERS}/{field}"), value)]);
        let paths: Vec<_> = told.errors.iter().map(|one| &*one.path).collect();
        assert_eq!(paths, [path]);
        assert_eq!(told.resources, []);
    }
    let lifecycle = json!({"maxLifetime": "30d"});
    let told = wished(&[(&format!("{PARAMETERS}/lifecycle"), lifecycle)]);
    assert_eq!(told.errors[0].path, "spec.parameters.lifecycle.maxLifetime");
}

#[test]
fn the_composite_of_a_claim_has_its_parameters_and_its_origin() {
    let claim = json!({
        "apiVersion": "platform.acme.io/v1alpha1", "kind": "GpuDevWorkspaceClaim",
        "metadata": {"namespace": "dev-alice", "name": "vision", "uid": "u"},
        "spec": {"parameters": {"flavor": "t4"}},
    });
    let made = wish::composite(&claim, true);
    assert_eq!(made["kind"], "GpuDevWorkspace");
    assert_eq!(made["spec"]["parameters"], claim["spec"]["parameters"]);
    assert_eq!(made["spec"]["claimRef"]["namespace"], "dev-alice");
    assert_eq!(
        made["metadata"]["labels"]["crossplane.io/claim-namespace"],
        "dev-alice"
    );
    assert_eq!(wish::composite(&claim, false), claim);
}

#[test]
fn a_change_that_ends_the_machine_is_told_and_one_that_does_not_is_not() {
    let market = changed("ready", &json!({"capacityType": "OnDemand"}));
    assert_eq!(
        (market.effect, market.is_on),
        (Effect::Replaced, true),
        "{}",
        market.message
    );
    let nothing = changed("ready", &json!({}));
    assert_eq!(nothing.effect, Effect::Unchanged, "{}", nothing.message);
    let stopped = changed("ready", &json!({"lifecycle": {"state": "Stopped"}}));
    assert_eq!(stopped.effect, Effect::Stopped, "{}", stopped.message);
    let refused = changed("ready", &json!({"instanceType": "p5.48xlarge"}));
    assert_eq!(refused.effect, Effect::Refused);
    assert_eq!(
        refused.outlook.errors[0].path,
        "spec.parameters.instanceType"
    );
}

#[test]
fn the_composed_resources_are_known_by_their_names_in_the_composition() {
    let named =
        json!({"metadata": {"annotations": {"crossplane.io/composition-resource-name": "pool"}}});
    let found = composed::by_name([named.clone(), json!({"metadata": {"name": "foreign"}})]);
    assert_eq!(found, BTreeMap::from([("pool".to_owned(), named)]));
}
