//! Rules with messages in place of patterns.
//!
//! The API server answers a value that breaks a pattern with the pattern itself (`should match
//! '^[a-z]{2}(-[a-z]+)+-[0-9]$'`). A rule in Kubernetes' expression language (CEL) has a message of
//! its own. Both use Go's regular expressions, and both find a match anywhere in the string.

use std::error::Error;

use kube::CustomResourceExt;
use serde_json::{Value, json};

/// Half of the cost that the API server allows a rule: `StaticEstimatedCostLimit` in
/// `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`.
const MOST: u64 = 5_000_000;

/// The CRD of a kind. The patterns of `spec` are rules with messages. Those of `status` stay:
/// controllers write `status`, and read no messages.
pub(super) fn crd<K: CustomResourceExt>() -> Result<Value, Box<dyn Error>> {
    let mut crd = serde_json::to_value(K::crd())?;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let spec = crd.pointer_mut(spec).ok_or("a kind without a spec")?;
    replace(spec, Some(1))?;
    Ok(crd)
}

/// The rule that accepts the strings of a pattern. There is none for a pattern with a quote: a raw
/// string of CEL cannot contain one.
pub(crate) fn rule(regex: &str) -> Option<String> {
    (!regex.contains('\'')).then(|| format!("self.matches(r'{regex}')"))
}

/// Replaces the patterns in a schema, at the places where Kubernetes allows rules. `count` is the
/// largest number of values of the schema in one object; none if there is no limit.
fn replace(schema: &mut Value, count: Option<u64>) -> Result<(), Box<dyn Error>> {
    if let Some(count) = count {
        replace_own(schema, count)?;
    }
    for (keyword, bound) in [
        ("items", "maxItems"),
        ("additionalProperties", "maxProperties"),
    ] {
        let bound = schema[bound].as_u64();
        let count = count
            .zip(bound)
            .map(|(count, each)| count.saturating_mul(each));
        if let Some(schema) = schema.get_mut(keyword) {
            replace(schema, count)?;
        }
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, schema) in properties.into_iter().flatten() {
        replace(schema, count)?;
    }
    Ok(())
}

/// Replaces the pattern of one schema, if the API server allows the rule.
fn replace_own(schema: &mut Value, count: u64) -> Result<(), Box<dyn Error>> {
    let Some(regex) = schema["pattern"].as_str() else {
        return Ok(());
    };
    let message = api::patterns::message(regex)
        .ok_or_else(|| format!("{regex}: has no message in api/src/patterns.rs"))?;
    let length = schema["maxLength"].as_u64();
    let is_cheap = length.is_some_and(|length| cost(regex, length, count) <= MOST);
    let Some(rule) = rule(regex).filter(|_| is_cheap) else {
        return Ok(());
    };
    let Some(keywords) = schema.as_object_mut() else {
        return Ok(());
    };
    keywords.remove("pattern");
    let rules = keywords
        .entry("x-kubernetes-validations")
        .or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(json!({"rule": rule, "message": message}));
    }
    Ok(())
}

/// The cost of a rule as the API server estimates it (`matches` in cel-go's `checker/cost.go`): a
/// tenth of the string's bytes, times a quarter of the pattern's, for each value. A character
/// counts as four bytes.
fn cost(regex: &str, length: u64, count: u64) -> u64 {
    let string = length.saturating_mul(4).saturating_add(1).div_ceil(10);
    let regex = u64::try_from(regex.len()).unwrap_or(u64::MAX).div_ceil(4);
    string.saturating_mul(regex).saturating_mul(count)
}

#[cfg(test)]
mod tests {
    use api::catalogue::Catalogue;
    use api::dev_user::{DevUser, DevUserPolicy};
    use api::flavor::{FlavorPolicy, WorkspaceFlavor};
    use api::lease::SpotLease;
    use api::limits::WorkspaceLimits;
    use api::policy::WorkspacePolicy;
    use api::pool::SpotPool;
    use api::provider_config::{ClusterProviderConfig, ProviderConfig};
    use api::workspace::GpuDevWorkspace;

    use super::super::input_schema;
    use super::*;

    const REGION: &str = "^[a-z]{2}(-[a-z]+)+-[0-9]$";

    /// The patterns in a schema, at any depth.
    fn patterns(schema: &Value) -> Vec<&str> {
        let mut found: Vec<&str> = schema["pattern"].as_str().into_iter().collect();
        match schema {
            Value::Object(keywords) => found.extend(keywords.values().flat_map(patterns)),
            Value::Array(schemas) => found.extend(schemas.iter().flat_map(patterns)),
            _ => {}
        }
        found
    }

    fn replaced(mut schema: Value) -> Value {
        replace(&mut schema, Some(1)).unwrap();
        schema
    }

    #[test]
    fn whoever_writes_a_wrong_value_reads_a_sentence() {
        for crd in [
            crd::<GpuDevWorkspace>().unwrap(),
            crd::<WorkspaceFlavor>().unwrap(),
            crd::<DevUser>().unwrap(),
            crd::<SpotPool>().unwrap(),
            crd::<SpotLease>().unwrap(),
            crd::<ProviderConfig>().unwrap(),
            crd::<ClusterProviderConfig>().unwrap(),
        ] {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let left = patterns(&schema["properties"]["spec"]);
            let kind = &crd["spec"]["names"]["kind"];
            assert!(
                left.is_empty(),
                "{kind}: give these strings a maxLength, and their lists a maxItems: {left:?}"
            );
        }
    }

    #[test]
    fn every_pattern_has_a_message() {
        for schema in [
            serde_json::to_value(GpuDevWorkspace::crd()).unwrap(),
            input_schema::<WorkspacePolicy>(),
            input_schema::<DevUserPolicy>(),
            input_schema::<FlavorPolicy>(),
            input_schema::<Catalogue>(),
            input_schema::<WorkspaceLimits>(),
        ] {
            for pattern in patterns(&schema) {
                assert!(api::patterns::message(pattern).is_some(), "{pattern}");
            }
        }
    }

    #[test]
    fn a_rule_of_the_field_stays_the_first() {
        let schema = replaced(json!({"properties": {"region": {
            "type": "string",
            "maxLength": 32,
            "pattern": REGION,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}],
        }}}));
        let rules = json!([
            {"rule": "self == oldSelf", "message": "immutable"},
            {
                "rule": "self.matches(r'^[a-z]{2}(-[a-z]+)+-[0-9]$')",
                "message": "write an AWS region, for example us-east-1",
            },
        ]);
        let region = &schema["properties"]["region"];
        assert_eq!(region["x-kubernetes-validations"], rules);
        assert_eq!(region["pattern"], Value::Null);
    }

    #[test]
    fn a_rule_that_the_api_server_refuses_is_not_written() {
        let entry = json!({"type": "string", "maxLength": 32, "pattern": REGION});
        let bounded = replaced(json!({"type": "array", "maxItems": 9, "items": entry}));
        assert!(patterns(&bounded).is_empty());
        let long = json!({"type": "string", "maxLength": 32_000, "pattern": REGION});
        for schema in [
            json!({"type": "array", "items": entry}),
            json!({"type": "object", "additionalProperties": entry}),
            json!({"type": "string", "pattern": REGION}),
            json!({"type": "array", "maxItems": 1000, "items": long}),
            // Rules inside of these have no effect.
            json!({"anyOf": [entry]}),
        ] {
            assert_eq!(replaced(schema.clone()), schema);
        }
        assert_eq!(rule("^'$"), None);
    }

    #[test]
    fn a_pattern_without_a_message_is_an_error() {
        let mut schema = json!({"type": "string", "maxLength": 1, "pattern": "^a$"});
        let error = replace(&mut schema, Some(1)).unwrap_err().to_string();
        assert_eq!(error, "^a$: has no message in api/src/patterns.rs");
    }
}
