//! Who a person is, from the claims of an ID token.
//!
//! The rules are those of Kubernetes' `AuthenticationConfiguration` (Kubernetes, "Authenticating"), and
//! are read from the same file as the API server's, so the portal and `kubectl` agree on a person's name.
//! The portal refuses more: what would be a person of Kubernetes' own, or what HTTP would change.

use serde::{Deserialize, Serialize};

pub use expression::{Expression, Failed, Unusable};
pub use mapping::{ClaimMappings, ClaimRule, Condition, Mapping, Source};

mod expression;
mod mapping;
#[cfg(test)]
mod tests;

/// The longest name of a person, in bytes.
const LONGEST: usize = 256;
/// The most groups that count. More would not fit into the headers of a request.
const MOST_GROUPS: usize = 200;

/// A person, as the API server knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Person {
    /// The name of the user.
    pub user: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The e-mail address, if the provider of identities has verified it.
    pub email: Option<String>,
}

/// Why the portal refuses a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The claim is missing, or is no text.
    #[error("the token has no text in the claim `{0}`")]
    Missing(String),
    /// A rule of the platform is not met.
    #[error("the claim `{claim}` of the token must be `{required}`")]
    Rule {
        /// The claim.
        claim: String,
        /// The value that it must have.
        required: String,
    },
    /// A rule that the platform has written as an expression is not met.
    #[error("the platform does not let this token in: {0}")]
    Condition(String),
    /// An expression has no result for the token.
    #[error("`{field}` of the platform cannot read the token: {failed}")]
    Expression {
        /// The field with the expression.
        field: &'static str,
        /// What is wrong.
        failed: Failed,
    },
    /// The provider of identities has not verified the e-mail address.
    #[error("the provider of identities has not verified the address in the claim `email`")]
    Unverified,
    /// The claim has no name that Kubernetes and HTTP carry unchanged.
    #[error("the claim `{claim}` is no name: {problem}")]
    Name {
        /// The claim.
        claim: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The provider has left the groups out (Microsoft Entra, "group overage").
    #[error(
        "the token names no groups because there are too many; ask the platform team to let the \
         provider of identities filter them"
    )]
    Overage,
    /// There are more groups than a request carries.
    #[error("the claim `{0}` has more than {MOST_GROUPS} groups that count")]
    TooManyGroups(String),
}

impl Person {
    /// The person whom the API server knows by a token. `counts` says which groups count; the others are left
    /// out, as are those of Kubernetes itself.
    ///
    /// # Errors
    ///
    /// The user is no person, or has too many groups.
    pub fn of_api_server(
        user: &str,
        groups: &[String],
        counts: impl Fn(&str) -> bool,
    ) -> Result<Self, Refused> {
        if let Some(problem) = problem(user) {
            let claim = "username".to_owned();
            return Err(Refused::Name { claim, problem });
        }
        let people = groups.iter().filter(|group| problem(group).is_none());
        Ok(Self {
            user: user.to_owned(),
            groups: counted(people.cloned().collect(), counts)?,
            // The API server does not tell it.
            email: None,
        })
    }
}

/// The groups that count, each once.
fn counted(mut groups: Vec<String>, counts: impl Fn(&str) -> bool) -> Result<Vec<String>, Refused> {
    groups.retain(|group| counts(group));
    groups.sort_unstable();
    groups.dedup();
    if groups.len() > MOST_GROUPS {
        return Err(Refused::TooManyGroups("groups".to_owned()));
    }
    Ok(groups)
}

/// What is wrong with the name of a person or a group.
fn problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > LONGEST {
        return Some("it has more than 256 bytes");
    }
    if name.chars().any(char::is_control) {
        return Some("it has a control character");
    }
    if name.trim() != name {
        // HTTP removes blanks at the ends of a header (RFC 9110, section 5.5), which would make
        // another name.
        return Some("it begins or ends with a blank");
    }
    if name.starts_with("system:") {
        return Some("names that begin with system: are Kubernetes' own");
    }
    None
}
