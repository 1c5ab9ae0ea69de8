//! How the claims of a token become a person: the fields of an entry of `jwt` in an `AuthenticationConfiguration`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expression::{Expression, Failed};
use super::{Person, Refused, counted, problem};

/// How claims become a person.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// The names of claims, or expressions.
    pub claim_mappings: ClaimMappings,
    /// What must hold of the claims.
    #[serde(default)]
    pub claim_validation_rules: Vec<ClaimRule>,
    /// What must hold of the user: expressions over `user`.
    #[serde(default)]
    pub user_validation_rules: Vec<Condition>,
}

/// What the parts of a user are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimMappings {
    /// The name.
    pub username: Source,
    /// The groups.
    #[serde(default)]
    pub groups: Option<Source>,
    /// The unique id. Rules see it; a request of the portal does not carry it.
    #[serde(default)]
    uid: Option<Unique>,
    /// More attributes. Rules see them; a request of the portal does not carry them.
    #[serde(default)]
    extra: Vec<Extra>,
}

/// Where a name comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub enum Source {
    /// A claim, and what is put in front of its value.
    Claim {
        /// The name of the claim.
        claim: String,
        /// The prefix. Kubernetes demands that it is written, even if it is empty.
        prefix: String,
    },
    /// The result of an expression over `claims`.
    Expression(Expression),
}

/// What must hold of the claims.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenRule")]
pub enum ClaimRule {
    /// A claim has one value.
    Value {
        /// The name of the claim.
        claim: String,
        /// The value that it must have.
        required: String,
    },
    /// An expression over `claims` is true.
    Condition(Condition),
}

/// An expression that must be true.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    expression: Expression,
    /// The sign-in page shows this text to a person for whom the expression is false; empty for the expression itself.
    #[serde(default)]
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Unique {
    Claim(String),
    Expression(Expression),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Extra {
    key: String,
    value_expression: Expression,
}

/// A source as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    claim: Option<String>,
    prefix: Option<String>,
    expression: Option<Expression>,
}

impl TryFrom<Written> for Source {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match (written.claim, written.prefix, written.expression) {
            (Some(claim), Some(prefix), None) => Ok(Self::Claim { claim, prefix }),
            (None, None, Some(expression)) => Ok(Self::Expression(expression)),
            _ => Err("either claim and prefix, or expression"),
        }
    }
}

/// A rule for claims as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRule {
    claim: Option<String>,
    required_value: Option<String>,
    expression: Option<Expression>,
    message: Option<String>,
}

impl TryFrom<WrittenRule> for ClaimRule {
    type Error = &'static str;

    fn try_from(written: WrittenRule) -> Result<Self, Self::Error> {
        match (written.claim, written.expression) {
            (Some(claim), None) if written.message.is_none() => Ok(Self::Value {
                claim,
                required: written.required_value.unwrap_or_default(),
            }),
            (None, Some(expression)) if written.required_value.is_none() => {
                let message = written.message.unwrap_or_default();
                Ok(Self::Condition(Condition {
                    expression,
                    message,
                }))
            }
            _ => Err("either claim and requiredValue, or expression and message"),
        }
    }
}

/// The claims of a token.
struct Claims<'c> {
    fields: &'c Map<String, Value>,
    /// The same, for expressions.
    value: Value,
}

impl Mapping {
    /// The person of some claims. `counts` says which groups count; the others are left out.
    ///
    /// # Errors
    ///
    /// The API server would refuse the token, or the person or a group is none for the portal.
    pub fn person(
        &self,
        claims: &Map<String, Value>,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Person, Refused> {
        let claims = &Claims {
            fields: claims,
            value: Value::Object(claims.clone()),
        };
        for rule in &self.claim_validation_rules {
            rule.check(claims)?;
        }
        let mappings = &self.claim_mappings;
        let verified = claims.verified_address();
        if mappings.username.mentions("email") && verified.is_none() {
            return Err(Refused::Unverified);
        }
        let user = mappings.username.user(claims)?;
        let groups = match &mappings.groups {
            Some(groups) => groups.groups(claims)?,
            None => Vec::new(),
        };
        self.check_user(&user, &groups, claims)?;
        Ok(Person {
            user,
            groups: counted(groups, counts)?,
            email: verified.map(str::to_owned),
        })
    }

    /// Checks the rules for users. A part of a user that cannot be read refuses the token, as in the API server.
    fn check_user(&self, user: &str, groups: &[String], claims: &Claims) -> Result<(), Refused> {
        let uid = match &self.claim_mappings.uid {
            Some(Unique::Claim(claim)) => claims.text(claim)?.to_owned(),
            Some(Unique::Expression(expression)) => {
                let uid = expression.string("claims", &claims.value);
                uid.map_err(|failed| refused("claimMappings.uid.expression", failed))?
            }
            None => String::new(),
        };
        let mut extra = Map::new();
        for one in &self.claim_mappings.extra {
            let values = one.value_expression.strings("claims", &claims.value);
            let failed = |failed| refused("claimMappings.extra[].valueExpression", failed);
            let values = values.map_err(failed)?;
            if !values.is_empty() {
                extra.insert(one.key.clone(), values.into());
            }
        }
        let user = json!({"username": user, "uid": uid, "groups": groups, "extra": extra});
        for rule in &self.user_validation_rules {
            rule.check("userValidationRules[].expression", "user", &user)?;
        }
        Ok(())
    }
}

impl ClaimRule {
    fn check(&self, claims: &Claims) -> Result<(), Refused> {
        match self {
            Self::Value { claim, required } => match claims.text(claim) {
                Ok(value) if value == required => Ok(()),
                _ => Err(Refused::Rule {
                    claim: claim.clone(),
                    required: required.clone(),
                }),
            },
            Self::Condition(condition) => {
                let field = "claimValidationRules[].expression";
                condition.check(field, "claims", &claims.value)
            }
        }
    }
}

impl Condition {
    fn check(&self, field: &'static str, variable: &str, value: &Value) -> Result<(), Refused> {
        match self.expression.holds(variable, value) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::Condition(match self.message.as_str() {
                "" => self.expression.text().to_owned(),
                message => message.to_owned(),
            })),
            Err(failed) => Err(refused(field, failed)),
        }
    }
}

impl Source {
    /// Whether the value may be that of a claim.
    fn mentions(&self, name: &str) -> bool {
        match self {
            Self::Claim { claim, .. } => claim == name,
            Self::Expression(expression) => expression.mentions(name),
        }
    }

    fn user(&self, claims: &Claims) -> Result<String, Refused> {
        match self {
            Self::Claim { claim, prefix } => prefixed(claim, prefix, claims.text(claim)?),
            Self::Expression(expression) => {
                const FIELD: &str = "claimMappings.username.expression";
                let user = expression.string("claims", &claims.value);
                let user = user.map_err(|failed| refused(FIELD, failed))?;
                prefixed(FIELD, "", &user)
            }
        }
    }

    /// All groups, also those that do not count: Kubernetes' own groups are refused even if they would not count.
    fn groups(&self, claims: &Claims) -> Result<Vec<String>, Refused> {
        if claims.left_out().any(|name| self.mentions(name)) {
            return Err(Refused::Overage);
        }
        match self {
            Self::Claim { claim, prefix } => {
                let bare = claims.texts(claim).into_iter();
                bare.map(|bare| prefixed(claim, prefix, bare)).collect()
            }
            Self::Expression(expression) => {
                const FIELD: &str = "claimMappings.groups.expression";
                let groups = expression.strings("claims", &claims.value);
                let groups = groups.map_err(|failed| refused(FIELD, failed))?;
                let groups = groups.iter().map(|group| prefixed(FIELD, "", group));
                groups.collect()
            }
        }
    }
}

impl Claims<'_> {
    fn text(&self, claim: &str) -> Result<&str, Refused> {
        let text = self.fields.get(claim).and_then(Value::as_str);
        text.ok_or_else(|| Refused::Missing(claim.to_owned()))
    }

    /// The texts of a claim. Kubernetes takes one text for a list of it.
    fn texts(&self, claim: &str) -> Vec<&str> {
        match self.fields.get(claim) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The e-mail address, if the provider of identities has verified it.
    fn verified_address(&self) -> Option<&str> {
        let is_verified = self.fields.get("email_verified") == Some(&Value::Bool(true));
        let email = self.fields.get("email").and_then(Value::as_str);
        email.filter(|_| is_verified)
    }

    /// The claims that the provider of identities has left out (`OpenID` Connect Core, "Aggregated and Distributed
    /// Claims").
    fn left_out(&self) -> impl Iterator<Item = &String> {
        let names = self.fields.get("_claim_names").and_then(Value::as_object);
        names.into_iter().flat_map(Map::keys)
    }
}

/// A name with its prefix.
fn prefixed(claim: &str, prefix: &str, bare: &str) -> Result<String, Refused> {
    let name = format!("{prefix}{bare}");
    match problem(bare).or_else(|| problem(&name)) {
        None => Ok(name),
        Some(problem) => Err(Refused::Name {
            claim: claim.to_owned(),
            problem,
        }),
    }
}

fn refused(field: &'static str, failed: Failed) -> Refused {
    Refused::Expression { field, failed }
}
