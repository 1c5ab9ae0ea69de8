//! The Composition of a kind, and the input of the function in it.

use serde_json::Value;

/// The input of this kind in a Composition.
pub fn input<'a>(composition: &'a Value, kind: &str) -> Option<&'a Value> {
    let steps = composition.pointer("/spec/pipeline")?.as_array()?;
    let mut inputs = steps.iter().filter_map(|step| step.get("input"));
    inputs.find(|input| text(input, "/kind") == Some(kind))
}

/// The `CompositeResourceDefinition` of the kind that people write: a composite, or a claim.
pub fn definition<'a>(
    definitions: impl IntoIterator<Item = &'a Value>,
    kind: &str,
) -> Option<&'a Value> {
    let names = ["/spec/names/kind", "/spec/claimNames/kind"];
    let defines = |definition: &&Value| {
        names
            .iter()
            .any(|name| text(definition, name) == Some(kind))
    };
    definitions.into_iter().find(defines)
}

/// The name of the Composition that Crossplane takes for an object of a definition. The definition may
/// enforce one. Otherwise the object names it, or it is the definition's default (Crossplane,
/// "Composite resource definitions").
pub fn of<'a>(definition: &'a Value, object: &'a Value) -> Option<&'a str> {
    text(definition, "/spec/enforcedCompositionRef/name")
        .or_else(|| text(object, "/spec/compositionRef/name"))
        .or_else(|| text(object, "/spec/crossplane/compositionRef/name"))
        .or_else(|| text(definition, "/spec/defaultCompositionRef/name"))
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_platform_decides_about_the_composition_before_the_claim_does() {
        let definition = |enforced: Value| {
            json!({"spec": {
                "names": {"kind": "GpuDevWorkspace"}, "claimNames": {"kind": "GpuDevWorkspaceClaim"},
                "defaultCompositionRef": {"name": "default"}, "enforcedCompositionRef": enforced,
            }})
        };
        let bare = json!({"spec": {}});
        let named = json!({"spec": {"compositionRef": {"name": "named"}}});
        let modern = json!({"spec": {"crossplane": {"compositionRef": {"name": "modern"}}}});
        let free = definition(Value::Null);
        assert_eq!(of(&free, &bare), Some("default"));
        assert_eq!(of(&free, &named), Some("named"));
        assert_eq!(of(&free, &modern), Some("modern"));
        let strict = definition(json!({"name": "enforced"}));
        assert_eq!(of(&strict, &named), Some("enforced"));
        let all = [json!({}), strict.clone()];
        assert_eq!(
            super::definition(&all, "GpuDevWorkspaceClaim"),
            Some(&strict)
        );
        assert_eq!(super::definition(&all, "DevUser"), None);
    }

    #[test]
    fn the_policy_is_the_input_of_its_kind() {
        let composition = json!({"spec": {"pipeline": [
            {"step": "other", "input": {"kind": "Other"}}, {"step": "none"},
            {"step": "workspace", "input": {"kind": "WorkspacePolicy", "allowed": true}},
        ]}});
        let found = input(&composition, "WorkspacePolicy").unwrap();
        assert_eq!(found["allowed"], true);
        assert_eq!(input(&composition, "DevUserPolicy"), None);
    }
}
