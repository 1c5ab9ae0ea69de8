//! Decides what is desired for a `DevUser`.

use std::collections::BTreeMap;
use std::time::Duration;

use api::condition::READY;
use api::cost::BudgetStatus;
use api::dev_user::{DevUserPolicy, DevUserSpec, DevUserStatus, SUBJECT_RULE};
use api::patterns;
use function_runtime::composite::Composite;
use function_runtime::desired::{Composed, Desired};
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::object::{ObservedObject, Status, given_name};
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{Response, fields};
use function_runtime::validation::{Schema, Violation, given};
use function_workspace::conditions;
use jiff::Timestamp;

use crate::budget::kept::Deleted;
use crate::budget::workspace::Workspace;
use crate::objects::{self, User};
use crate::protection::{self, Contents};
use crate::{access, budget, counted, existing, policy, refused, resource_names};

static SPEC: Schema<DevUserSpec> = Schema::of("spec", patterns::message);
/// Kubernetes' limit on the length of a namespace's name.
const LONGEST: usize = 63;
/// When to look again while a resource is not ready.
const UNSETTLED_TTL: Duration = Duration::from_secs(10);
/// Shortest time until the next call.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// Composes the user's namespace and its contents. With a wrong policy, spec or name, everything
/// observed stays as it is.
pub fn render(request: &Request, composite: Composite<'_>) -> Response {
    match resolve(request, composite) {
        Ok((policy, spec)) => {
            // A namespace cannot be renamed: it keeps the prefix that it was made with.
            let new = || format!("{}{}", policy.namespace_prefix, composite.name());
            let there = given_name(request.observed.get(resource_names::NAMESPACE));
            let namespace = there.map_or_else(new, str::to_owned);
            let user = User {
                name: composite.name(),
                namespace: &namespace,
                spec: &spec,
                policy: &policy,
            };
            existing::check(request, user)
                .and_then(|()| composed(request, user))
                .unwrap_or_else(|why| Response {
                    // Crossplane calls again while these change, so a refusal must not change them.
                    requirements: requirements(request, user),
                    ..refused::render(request, composite, &why)
                })
        }
        Err(why) => refused::render(request, composite, &why),
    }
}

fn resolve(
    request: &Request,
    composite: Composite<'_>,
) -> Result<(DevUserPolicy, DevUserSpec), Refusal> {
    let policy = policy::read(request.policy.as_ref()).map_err(|wrong| Refusal::policy(&wrong))?;
    let spec = request.composite.as_ref().and_then(|xr| xr.get("spec"));
    let spec = SPEC.read(&given(spec)).map_err(Refusal::parameters)?;
    check_subjects(&spec)?;
    let name = composite.name();
    let fits = policy.namespace_prefix.len() + name.len() <= LONGEST
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !fits {
        let problem = format!(
            "{name} cannot be part of a namespace's name ({}{name}): use lower-case letters, \
             digits and -, {} characters at most",
            policy.namespace_prefix,
            LONGEST - policy.namespace_prefix.len()
        );
        return Err(Refusal::parameters(Violation::new(
            "metadata.name",
            problem,
        )));
    }
    Ok((policy, spec))
}

/// Refuses subjects of Kubernetes itself: the namespace of a person would belong to everybody who
/// is logged in. The XRD refuses them too, but a `DevUser` may be older than its schema.
fn check_subjects(spec: &DevUserSpec) -> Result<(), Refusal> {
    let strange = spec
        .subjects
        .iter()
        .position(|subject| !subject.is_person());
    let Some(index) = strange else {
        return Ok(());
    };
    let path = format!("spec.subjects[{index}].name");
    Err(Refusal::parameters(Violation::new(path, SUBJECT_RULE)))
}

fn composed(request: &Request, user: User<'_>) -> Result<Response, Refusal> {
    let observed = &request.observed;
    let contents = protection::contents(request);
    let quota = counted::quota(request, user);
    let protection = protection::reason(Some(user.policy), user.namespace, &contents);
    let budget = budget(request, user, &contents);
    let namespace = Composed::manifest(&user.namespace())?;
    let mut objects = BTreeMap::from([(resource_names::NAMESPACE.to_owned(), namespace)]);
    // The API server refuses an object whose namespace does not exist yet.
    if observed.contains_key(resource_names::NAMESPACE) {
        objects.extend(user.contents(&quota.hard, budget.as_ref())?);
    }
    if let Some(reason) = &protection {
        objects.insert(
            resource_names::PROTECTION.to_owned(),
            objects::protection(user.name, reason),
        );
    }
    if contents == Contents::Unknown {
        let others = observed
            .iter()
            .filter(|(name, _)| !access::is_binding(name));
        for (name, object) in others {
            let kept = || keep::kept(object);
            objects.entry(name.clone()).or_insert_with(kept);
        }
    }
    let waits = objects
        .keys()
        .find_map(|name| unready(name, observed.get(name)))
        .or(quota.wait);
    let ready = waits.is_none();
    let status = DevUserStatus {
        namespace: Some(user.namespace.to_owned()),
        protected: protection.is_some(),
        budget,
        homes: contents.into_homes(),
        suspended: user.spec.suspended,
        message: waits
            .or_else(|| user.spec.suspended.then(|| access::SUSPENDED.to_owned()))
            .or(protection),
    };
    let resources = objects.into_iter().map(|(name, object)| {
        let ready = unready(&name, observed.get(&name)).is_none();
        (name, Composed { object, ready })
    });
    let ttl = if ready {
        user.policy.refresh_interval.timer()
    } else {
        UNSETTLED_TTL
    };
    Ok(Response {
        ttl: ttl.min(next_budget(status.budget.as_ref(), request.now)),
        requirements: requirements(request, user),
        desired: Some(Desired {
            resources: resources.collect(),
            status: fields(&status)?,
            connection: BTreeMap::new(),
            ready: request.readiness(ready),
        }),
        conditions: vec![conditions::config_resolved(String::new())],
        events: Vec::new(),
        violations: Vec::new(),
    })
}

/// The resources that Crossplane must fetch for a user with a valid spec and policy.
fn requirements(request: &Request, user: User<'_>) -> Vec<Requirement> {
    let budgets = user.policy.budgets.as_ref();
    let budgets = budgets.filter(|_| user.spec.budget.is_some());
    let workspaces = budgets.map(|policy| budget::requirement(policy, user.namespace));
    let existing = existing::requirement(request, user.namespace);
    let mut required = protection::requirements(user.namespace);
    required.extend(workspaces);
    required.extend(existing);
    required.extend(counted::requirements(request, user));
    required
}

/// The new budget status. Returns the last status while Crossplane has not fetched the workspaces
/// yet.
fn budget(request: &Request, user: User<'_>, contents: &Contents) -> Option<BudgetStatus> {
    let policy = user.policy.budgets.as_ref()?;
    let asked = user.spec.budget.as_ref()?;
    let kind = policy.kind;
    let previous = budget::previous(request);
    let Some(found) = request.required.get(budget::WORKSPACES) else {
        return previous;
    };
    let workspaces = Workspace::of(found, kind, user.name);
    let namespace = (!policy.everywhere).then(|| user.namespace.to_owned());
    let previous = previous.as_ref();
    let deleted = Deleted {
        listed: &asked.deleted_homes,
        namespace: user.namespace,
        there: contents.homes(),
    };
    Some(budget::decide(
        previous,
        asked.monthly_usd,
        &workspaces,
        &deleted,
        namespace,
        request.now,
    ))
}

fn next_budget(status: Option<&BudgetStatus>, now: Timestamp) -> Duration {
    let next = status.and_then(budget::next);
    let left = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    left.map_or(Duration::MAX, |left| left.max(SHORTEST_TTL))
}

/// Why a resource is not ready; none if it is.
fn unready(resource_name: &str, observed: Option<&Json<'_>>) -> Option<String> {
    let Some(observed) = observed else {
        return Some(format!("waiting for Crossplane to make {resource_name}"));
    };
    let object = ObservedObject::new(observed);
    let name = object.name();
    match resource_name {
        resource_names::NAMESPACE => {
            let phase = observed.pointer("/status/phase").and_then(Json::as_str);
            (phase != Some("Active")).then(|| format!("Namespace {name} is not active"))
        }
        // Kubernetes refuses every object of a quota that its controller has not counted yet.
        resource_names::QUOTA => uncounted(observed).map(|resource| {
            format!("ResourceQuota {name}: Kubernetes has not counted {resource} yet")
        }),
        resource_names::PROTECTION => {
            (!object.holds(READY)).then(|| format!("ClusterUsage {name} is not ready"))
        }
        resource_names::LOCAL_QUEUE => {
            let active = object.condition("Active");
            match active {
                Some(active) if active.status == Status::True => None,
                Some(active) => Some(format!(
                    "LocalQueue {name} is not active: {}",
                    active.message
                )),
                None => Some(format!("LocalQueue {name}: Kueue says nothing of it yet")),
            }
        }
        _ => None,
    }
}

/// The first resource of a quota whose use Kubernetes has not counted yet; none if it has counted
/// all. The quota's status has the bounds before it has the use.
fn uncounted<'a>(quota: &'a Json<'_>) -> Option<&'a str> {
    let bounded = quota.pointer("/spec/hard");
    let counted = quota.pointer("/status/used");
    let is_counted = |resource: &str| counted.is_some_and(|used| used.get(resource).is_some());
    let bounded = bounded.into_iter().flat_map(Json::fields);
    let resources = bounded.map(|(resource, _)| resource);
    resources.filter(|resource| !is_counted(resource)).min()
}
