//! The portal's configuration: one file of YAML, and the API server's `AuthenticationConfiguration`.

use std::path::{Path, PathBuf};

use api::duration::Duration;
use jiff::SignedDuration;
use openidconnect::url::Url;
use portal_core::identity::Mapping;
use serde::Deserialize;

/// What the platform team says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Configuration {
    /// Where people reach the portal, for example `https://portal.acme.io`.
    pub(crate) public_url: Url,
    /// The file with the API server's `AuthenticationConfiguration`.
    pub(crate) authentication: PathBuf,
    /// The portal at the provider of identities.
    pub(crate) client: Client,
    /// Which groups count.
    #[serde(default)]
    pub(crate) groups: Groups,
    /// As whom the portal acts for people.
    #[serde(default)]
    pub(crate) act_as: ActAs,
    /// Whether programs may come with a person's token.
    #[serde(default)]
    pub(crate) bearer_tokens: bool,
    /// How long a person stays signed in.
    #[serde(default)]
    pub(crate) sessions: SessionLimits,
    /// The `EnvironmentConfig` with the platform's limits, as the function has it.
    #[serde(default)]
    pub(crate) limits: Option<String>,
}

/// How long a person stays signed in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionLimits {
    longest: Option<Duration>,
    idle: Option<Duration>,
    groups_every: Option<Duration>,
}

impl SessionLimits {
    /// The longest session.
    pub(crate) fn longest(&self) -> SignedDuration {
        length(self.longest.as_ref(), SignedDuration::from_hours(12))
    }

    /// After which time an unused session ends. The other replicas learn of a use this late at most, so no session
    /// ends too early.
    pub(crate) fn unused(&self) -> SignedDuration {
        self.idle() + self.uses_written_every()
    }

    /// How often a replica writes that a session is used.
    pub(crate) fn uses_written_every(&self) -> SignedDuration {
        self.idle() / 16
    }

    /// After which time an unused session ends, as the platform team says it.
    pub(crate) fn idle(&self) -> SignedDuration {
        length(self.idle.as_ref(), SignedDuration::from_hours(8))
    }

    /// How often the portal asks the provider of identities again for a person's groups.
    pub(crate) fn groups_every(&self) -> SignedDuration {
        length(self.groups_every.as_ref(), SignedDuration::from_mins(15))
    }
}

fn length(said: Option<&Duration>, otherwise: SignedDuration) -> SignedDuration {
    said.map_or(otherwise, Duration::length)
}

/// As whom the portal acts for people.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum ActAs {
    /// As the service account of the person's namespace.
    #[default]
    Account,
    /// As the person.
    Person,
}

/// The portal at the provider of identities.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Client {
    /// The id, which is an audience of the tokens.
    pub(crate) id: String,
    /// The file with the secret.
    pub(crate) secret_file: PathBuf,
}

/// Which groups count.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Groups {
    /// Names of groups. A `*` at the end stands for anything. Without any, no group counts.
    #[serde(default)]
    pub(crate) include: Vec<String>,
}

impl Groups {
    /// Whether a group counts.
    pub(crate) fn counts(&self, name: &str) -> bool {
        self.include
            .iter()
            .any(|included| match included.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => included == name,
            })
    }
}

/// The provider of identities, and the mapping from its tokens to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issuer {
    /// The address.
    pub(crate) url: String,
    /// The certificate authority of the address, as PEM; none for those of the system.
    pub(crate) authority: Option<String>,
    /// How tokens become people.
    pub(crate) mapping: Mapping,
}

/// Why the portal does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {source}")]
    Wrong { path: PathBuf, source: Wrong },
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error(transparent)]
    Yaml(#[from] serde_yaml::Error),
    #[error("publicUrl: {0}")]
    PublicUrl(&'static str),
    #[error("no entry of jwt has the audience {0}, which is client.id of the portal")]
    NoIssuer(String),
    #[error("several entries of jwt have the audience {0}")]
    SeveralIssuers(String),
    #[error("jwt[].issuer.url: {0} is not an https address")]
    Insecure(String),
}

/// Reads a file, and then what is in it.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Wrong>,
) -> Result<T, Error> {
    let path = path.to_owned();
    match std::fs::read_to_string(&path) {
        Err(source) => Err(Error::Read { path, source }),
        Ok(text) => parse(&text).map_err(|source| Error::Wrong { path, source }),
    }
}

/// The configuration.
pub(crate) fn configuration(text: &str) -> Result<Configuration, Wrong> {
    let configuration: Configuration = serde_yaml::from_str(text)?;
    let url = &configuration.public_url;
    if url.scheme() != "https" {
        let problem = "must begin with https://: a cookie of a session goes over TLS only";
        return Err(Wrong::PublicUrl(problem));
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        let problem = "must have no path: a cookie of a session is for the whole host";
        return Err(Wrong::PublicUrl(problem));
    }
    Ok(configuration)
}

/// The entry of the API server's configuration whose tokens are for the portal.
pub(crate) fn issuer(text: &str, client: &str) -> Result<Issuer, Wrong> {
    let whole: Authentication = serde_yaml::from_str(text)?;
    // What the entries of others say does not matter here.
    let mut mine = whole.jwt.into_iter().filter(|entry| is_for(entry, client));
    let none = || Wrong::NoIssuer(client.to_owned());
    let mut entry = mine.next().ok_or_else(none)?;
    if mine.next().is_some() {
        return Err(Wrong::SeveralIssuers(client.to_owned()));
    }
    // The rest of the entry is the mapping.
    let issuer = entry
        .as_mapping_mut()
        .and_then(|entry| entry.remove("issuer"));
    let issuer: EntryIssuer = serde_yaml::from_value(issuer.ok_or_else(none)?)?;
    if !issuer.url.starts_with("https://") {
        return Err(Wrong::Insecure(issuer.url));
    }
    Ok(Issuer {
        url: issuer.url,
        authority: issuer.certificate_authority,
        // A field that the portal does not know could keep people out, so it is refused.
        mapping: serde_yaml::from_value(entry)?,
    })
}

fn is_for(entry: &serde_yaml::Value, client: &str) -> bool {
    let audiences = entry
        .get("issuer")
        .and_then(|issuer| issuer.get("audiences"));
    let audiences = audiences.and_then(serde_yaml::Value::as_sequence);
    audiences.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(client)))
}

/// The file of the API server's option `--authentication-config`.
#[derive(Deserialize)]
struct Authentication {
    #[serde(default)]
    jwt: Vec<serde_yaml::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EntryIssuer {
    url: String,
    #[serde(rename = "audiences")]
    _audiences: Vec<String>,
    #[serde(default)]
    certificate_authority: Option<String>,
    #[serde(default, rename = "audienceMatchPolicy")]
    _audience_match_policy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "
- issuer: {url: 'https://idp.acme.io', audiences: [kubectl, gpu-portal]}
  claimMappings:
    username: {claim: email, prefix: ''}
    groups: {claim: groups, prefix: ''}
";

    fn authentication(entries: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:{entries}"
        )
    }

    #[test]
    fn the_api_servers_file_says_who_somebody_is() {
        let issuer = issuer(&authentication(ENTRY), "gpu-portal").unwrap();
        assert_eq!(issuer.url, "https://idp.acme.io");
        let username = serde_yaml::from_str("{claim: email, prefix: ''}").unwrap();
        assert_eq!(issuer.mapping.claim_mappings.username, username);
    }

    #[test]
    fn a_file_that_leaves_open_who_somebody_is_stops_the_portal() {
        let wrong =
            |entries: &str, client: &str| issuer(&authentication(entries), client).unwrap_err();
        assert!(matches!(wrong(ENTRY, "other"), Wrong::NoIssuer(_)));
        let twice = format!("{ENTRY}{ENTRY}");
        assert!(matches!(
            wrong(&twice, "gpu-portal"),
            Wrong::SeveralIssuers(_)
        ));
        let plain = ENTRY.replace("https:", "http:");
        assert!(matches!(wrong(&plain, "gpu-portal"), Wrong::Insecure(_)));
        // A rule that the portal does not know could keep people out.
        let rules = format!("{ENTRY}  futureRules: [{{expression: 'true'}}]\n");
        let unknown = wrong(&rules, "gpu-portal").to_string();
        assert!(unknown.contains("futureRules"), "{unknown}");
        // The same rule for the tokens of others does not.
        let others = rules.replace("gpu-portal", "others");
        assert!(issuer(&authentication(&format!("{others}{ENTRY}")), "gpu-portal").is_ok());
    }

    #[test]
    fn a_portal_without_tls_or_below_a_path_does_not_start() {
        let text = "publicUrl: URL\nauthentication: /a\nclient: {id: a, secretFile: /b}\n";
        let of = |url: &str| configuration(&text.replace("URL", url));
        assert!(of("https://portal.acme.io").is_ok());
        for url in [
            "http://portal.acme.io",
            "https://acme.io/portal",
            "https://a/?b",
        ] {
            let wrong = of(url).unwrap_err();
            assert!(matches!(wrong, Wrong::PublicUrl(_)), "{wrong}");
        }
        let unknown = of("https://a\ngroupz: {}").unwrap_err().to_string();
        assert!(unknown.contains("groupz"), "{unknown}");
    }

    #[test]
    fn the_example_of_the_documentation_is_read() {
        const PAGE: &str = include_str!("../../docs/portal.md");
        let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let read = configuration(example).unwrap();
        assert_eq!(read.act_as, ActAs::Account);
        assert!(read.groups.counts("acme:vision-x"));
    }

    #[test]
    fn groups_count_only_if_they_are_named() {
        let groups = Groups {
            include: vec!["vision".into(), "gpu-*".into()],
        };
        let counted = ["vision", "gpu-", "gpu-a", "vision-2", "a-gpu-"];
        let counted = counted.map(|name| groups.counts(name));
        assert_eq!(counted, [true, true, true, false, false]);
        assert!(!Groups::default().counts("vision"));
    }
}
