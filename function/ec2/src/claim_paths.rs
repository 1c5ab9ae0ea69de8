//! Translates field paths of the `SpotPool` in messages into paths that the owner of the claim
//! knows.

use crate::instance_types::InstanceType;

const PREFIX: &str = "spec.forProvider.";

/// The pool's fields and the sources of their values. A longer name comes before its prefix.
const FIELDS: [(&str, Owner); 10] = [
    ("instanceTypes", Owner::Types),
    ("region", Owner::Claim),
    ("capacityType", Owner::Claim),
    ("ssh.allowedCidrs", Owner::Claim),
    ("image.id", Owner::Image),
    ("image", Owner::Image),
    ("subnetIds", Owner::Network),
    ("securityGroupIds", Owner::Network),
    ("rootVolumeSizeGiB", Owner::Policy),
    ("iamInstanceProfile", Owner::Policy),
];

#[derive(Clone, Copy)]
enum Owner {
    /// `instanceType` and `instanceTypes` of the claim, without duplicates.
    Types,
    /// The claim's parameter with the same name.
    Claim,
    /// The image in the catalogue.
    Image,
    /// The network in the catalogue.
    Network,
    /// `instance` of the policy.
    Policy,
}

/// The sources of the pool's fields. The default has no sources and leaves messages unchanged.
#[derive(Clone, Debug, Default)]
pub struct ClaimPaths {
    /// The name of the catalogue's first `EnvironmentConfig`.
    pub catalogue: String,
    /// The region of the workspace.
    pub region: String,
    /// The name of the image in the catalogue.
    pub image: String,
    /// The instance types of the workspace, in the order of the pool.
    pub instance_types: Vec<InstanceType>,
}

impl ClaimPaths {
    /// Replaces the pool's paths in a message.
    pub fn translate(&self, message: &str) -> String {
        if self.catalogue.is_empty() {
            return message.to_owned();
        }
        let mut translated = String::with_capacity(message.len());
        let mut rest = message;
        while let Some(start) = rest.find(PREFIX) {
            let (before, path) = rest.split_at(start);
            let field = &path[PREFIX.len()..];
            let (claimed, length) = self.field(field);
            translated.push_str(before);
            if length == 0 {
                translated.push_str(PREFIX);
            } else {
                translated.push_str(&claimed);
            }
            rest = &field[length..];
        }
        translated.push_str(rest);
        translated.replace(
            "spec.providerConfigRef",
            "providerConfigRef of the Composition's policy",
        )
    }

    /// The path in claim, policy or catalogue for the field at the start of `text`, and the length
    /// of the field in `text`. The length is 0 if the field has no such path.
    fn field(&self, text: &str) -> (String, usize) {
        let found = FIELDS.iter().find(|(name, _)| names(text, name));
        let Some((name, owner)) = found else {
            return (String::new(), 0);
        };
        let index = index(&text[name.len()..]);
        let claimed = match (owner, index) {
            (Owner::Types, Some(index)) => {
                let n: Option<usize> = index[1..index.len() - 1].parse().ok();
                match n.and_then(|n| self.instance_types.get(n)) {
                    Some(instance_type) => instance_type.path.clone(),
                    None => return (String::new(), 0),
                }
            }
            (Owner::Claim, _) | (Owner::Types, None) => format!("spec.parameters.{name}"),
            (Owner::Policy, _) => format!("instance.{name} of the Composition's policy"),
            (Owner::Network, index) => {
                let index = index.unwrap_or_default();
                self.in_catalogue(&format!("networks.{}.{name}{index}", self.region))
            }
            (Owner::Image, _) => {
                self.in_catalogue(&format!("images.{}.{}.id", self.region, self.image))
            }
        };
        let index_in_path = matches!(owner, Owner::Types | Owner::Network);
        let index_length = index.filter(|_| index_in_path).map_or(0, str::len);
        (claimed, name.len() + index_length)
    }

    fn in_catalogue(&self, path: &str) -> String {
        format!("data.{path} of EnvironmentConfig {}", self.catalogue)
    }
}

/// Whether `text` starts with `name` as a whole word.
fn names(text: &str, name: &str) -> bool {
    text.strip_prefix(name)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The index at the start of a text, for example `[0]`.
fn index(text: &str) -> Option<&str> {
    let (digits, _) = text.strip_prefix('[')?.split_once(']')?;
    let is_index = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_index.then(|| &text[..digits.len() + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> ClaimPaths {
        let instance_type = |name: &str, path: &str| InstanceType {
            name: name.into(),
            path: path.into(),
        };
        ClaimPaths {
            catalogue: "gpu-workspaces".into(),
            region: "us-east-1".into(),
            image: "default".into(),
            instance_types: vec![
                instance_type("g4dn.xlarge", "spec.parameters.instanceType"),
                // The first entry of `instanceTypes` repeats `instanceType`.
                instance_type("g5.xlarge", "spec.parameters.instanceTypes[1]"),
            ],
        }
    }

    #[test]
    fn a_message_about_the_pool_names_the_fields_that_the_reader_can_change() {
        let cases = [
            (
                "spec.forProvider.instanceTypes[0]: g4dn.xlarge is not offered in spec.forProvider.region us-east-1",
                "spec.parameters.instanceType: g4dn.xlarge is not offered in spec.parameters.region us-east-1",
            ),
            (
                "spec.forProvider.instanceTypes[1]: no",
                "spec.parameters.instanceTypes[1]: no",
            ),
            (
                "spec.forProvider.image.id: ami-1 does not exist",
                "data.images.us-east-1.default.id of EnvironmentConfig gpu-workspaces: ami-1 does not exist",
            ),
            (
                "spec.forProvider.subnetIds[0]: gone",
                "data.networks.us-east-1.subnetIds[0] of EnvironmentConfig gpu-workspaces: gone",
            ),
            (
                "spec.forProvider.iamInstanceProfile: unknown",
                "instance.iamInstanceProfile of the Composition's policy: unknown",
            ),
            (
                "add types to spec.forProvider.instanceTypes",
                "add types to spec.parameters.instanceTypes",
            ),
            (
                "spec.providerConfigRef: denied",
                "providerConfigRef of the Composition's policy: denied",
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(paths().translate(message), expected);
        }
    }

    #[test]
    fn a_field_without_another_name_keeps_its_own() {
        for message in [
            "spec.forProvider.userData: too long",
            "spec.forProvider.instanceTypes[7]",
            "spec.forProvider.",
            "no path at all",
        ] {
            assert_eq!(paths().translate(message), message);
        }
    }
}
