//! Decides about a claim that does not exist yet, or about another form of one that does.
//!
//! The function decides about the claim's composite as Crossplane would ask for it. If a budget counts, the
//! function decides about the owner's `DevUser` with the new workspace as well, and then once more about the
//! workspace.

use std::collections::BTreeMap;

use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::{Condition, Response};
use function_workspace::cost::budget;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::calls::{self, Calls, Decision};
use crate::effect;
use crate::granting::{Granting, account, settled};
use crate::outlook::{Account, Changed, Outlook, asked, status};
use crate::platform::{Platform, WORKSPACE_POLICY};
use crate::selection::CLAIM_NAMESPACE;

/// The composite that Crossplane would make of a claim. A claim of the configuration without claims is its own
/// composite.
pub fn composite(claim: &Value, has_claims: bool) -> Value {
    if !has_claims {
        return claim.clone();
    }
    let text = |pointer: &str| claim.pointer(pointer).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    json!({
        "apiVersion": claim["apiVersion"],
        "kind": "GpuDevWorkspace",
        "metadata": {
            // Crossplane adds five random characters.
            "name": format!("{name}-new"),
            "uid": claim.pointer("/metadata/uid"),
            "annotations": claim.pointer("/metadata/annotations").cloned().unwrap_or(json!({})),
            "labels": {"crossplane.io/claim-name": name, CLAIM_NAMESPACE: namespace},
        },
        "spec": {
            "parameters": claim.pointer("/spec/parameters"),
            "claimRef": {
                "apiVersion": claim["apiVersion"], "kind": claim["kind"],
                "namespace": namespace, "name": name,
            },
            "compositionRef": claim.pointer("/spec/compositionRef"),
        },
    })
}

/// What a composite would get, as of `now`. `observed` has its composed resources, by composition resource
/// name; none if it does not exist yet.
///
/// # Errors
///
/// The platform cannot be read.
pub async fn outlook<P: Platform>(
    platform: &P,
    kinds: Kinds,
    now: Timestamp,
    composite: &Value,
    observed: &BTreeMap<String, Value>,
) -> Result<Outlook, P::Error> {
    let first = decided(
        platform,
        kinds,
        request(platform, now, composite, observed),
        None,
    )
    .await?;
    told(platform, kinds, composite, &first).await
}

/// What the first decision about a composite gives, after the owner's budget has decided.
async fn told<P: Platform>(
    platform: &P,
    kinds: Kinds,
    composite: &Value,
    first: &Decision,
) -> Result<Outlook, P::Error> {
    let now = first.request.now;
    let Some(asked) = asked(&first.response) else {
        return Ok(Outlook::of(first, None));
    };
    let Some(user) = owner(platform, &first.response).await? else {
        return Ok(Outlook::of(first, None));
    };
    let granting = Granting {
        platform,
        kinds,
        composite,
        first,
    };
    let before = account(&user, asked.usd);
    let user = granting.grant(user, now).await?;
    let request = Request {
        composite: Some(granting.composite().into()),
        observed: (first.request.observed.clone().into_iter())
            .chain(calls::observed(&granting.record()))
            .collect(),
        now: settled(now),
        ..first.request.clone()
    };
    let last = decided(platform, kinds, request, Some(&user)).await?;
    let within = last.response.condition(api::condition::WITHIN_BUDGET);
    let is_granted = within.is_none_or(Condition::holds);
    let account = before.map(|before| Account {
        is_granted,
        ..before
    });
    let mut outlook = Outlook::of(&last, account);
    outlook.hourly_usd = outlook.hourly_usd.or(Some(asked.hourly_usd));
    Ok(outlook)
}

/// What another composite would get in the place of one that exists. `observed` has its composed resources.
///
/// # Errors
///
/// The platform cannot be read.
pub async fn change<P: Platform>(
    platform: &P,
    kinds: Kinds,
    now: Timestamp,
    (before, after): (&Value, &Value),
    observed: &BTreeMap<String, Value>,
) -> Result<Changed, P::Error> {
    let request = |composite| request(platform, now, composite, observed);
    let today = decided(platform, kinds, request(before), None).await?;
    let then = decided(platform, kinds, request(after), None).await?;
    let pods_are_on = effect::pods_are_on(before);
    let of_pods = pods_are_on.and_then(|_| effect::unresolved_pods(&then.response));
    let compared =
        of_pods.unwrap_or_else(|| effect::compare(observed, &today.response, &then.response));
    Ok(Changed {
        // Pods are not read. Their status says all that matters: a change of their template ends none of them.
        is_known: !observed.is_empty() || pods_are_on.is_some(),
        effect: compared.effect,
        message: compared.message,
        is_on: effect::is_on(observed) || pods_are_on == Some(true),
        outlook: told(platform, kinds, after, &then).await?,
    })
}

/// The first request for a decision about a composite.
fn request<P: Platform>(
    platform: &P,
    now: Timestamp,
    composite: &Value,
    observed: &BTreeMap<String, Value>,
) -> Request<'static> {
    Request {
        policy: platform.policy(WORKSPACE_POLICY, composite),
        composite: Some(composite.clone().into()),
        observed: calls::observed(observed),
        now,
        ..Request::default()
    }
}

/// Calls the function until it asks for nothing else. `user` replaces the owner's `DevUser`.
async fn decided<P: Platform>(
    platform: &P,
    kinds: Kinds,
    request: Request<'static>,
    user: Option<&Value>,
) -> Result<Decision, P::Error> {
    let mut calls = Calls::begin(kinds, request);
    loop {
        let mut required = BTreeMap::new();
        for requirement in calls.requirements().to_vec() {
            let found = match user.filter(|_| requirement.kind == "DevUser") {
                Some(user) => vec![user.clone()],
                None => platform.select(&requirement).await?,
            };
            required.insert(requirement.name, found);
        }
        if !calls.supply(required) {
            return Ok(calls.end());
        }
    }
}

/// The owner's `DevUser`.
async fn owner<P: Platform>(platform: &P, response: &Response) -> Result<Option<Value>, P::Error> {
    let owner = status(response).owner.unwrap_or_default();
    let found = platform.select(&budget::dev_user(&owner)).await?;
    Ok(found.into_iter().next())
}
