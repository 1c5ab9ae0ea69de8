//! The user's settings, `~/.config/devctl/config.toml`.

use toml_edit::DocumentMut;

use crate::problem::Problem;

/// The settings. An option of the command line and a variable of the environment count before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Namespace of the workspaces.
    pub namespace: Option<String>,
    /// Context of the kubeconfig.
    pub context: Option<String>,
    /// Bastion to go through, as a destination of ssh.
    pub bastion: Option<String>,
}

/// Reads the settings. An unknown key is an error that names it.
pub fn read(content: &str, path: &str) -> Result<Configuration, Problem> {
    let document: DocumentMut = content
        .parse()
        .map_err(|error| Problem::usage(path, format!("it is no TOML: {error}")))?;
    let mut configuration = Configuration::default();
    for (key, item) in document.iter() {
        let text = item
            .as_str()
            .ok_or_else(|| Problem::usage(path, format!("{key}: write a text in quotes")))?;
        match key {
            "namespace" => configuration.namespace = Some(text.to_owned()),
            "context" => configuration.context = Some(text.to_owned()),
            "bastion" => configuration.bastion = Some(text.to_owned()),
            other => {
                let message =
                    format!("{other}: unknown; the keys are namespace, context and bastion");
                return Err(Problem::usage(path, message));
            }
        }
    }
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_the_settings_is_named() {
        let read = |text| read(text, "config.toml");
        let good = read("namespace = \"dev-dave\"\ncontext = \"prod\"\n").unwrap();
        assert_eq!(good.namespace.as_deref(), Some("dev-dave"));
        for (text, part) in [
            ("namspace = \"x\"", "namspace: unknown"),
            ("namespace = 1", "namespace: write"),
            ("=", "no TOML"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.message.contains(part), "{}", problem.message);
        }
    }
}
