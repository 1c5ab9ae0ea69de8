//! A client of the instance metadata service, version 2.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_credential_types::Credentials;
use serde::Deserialize;
use ureq::Agent;

use crate::http::{self, Trust};
use crate::log::Problem;

/// The address of the service on every instance.
pub const ENDPOINT: &str = "http://169.254.169.254";

const TIMEOUT: Duration = Duration::from_secs(3);
/// The longest lifetime of a token that the service allows.
const TOKEN_SECONDS: &str = "21600";
const ROLES: &str = "iam/security-credentials/";

/// A client of the service.
pub struct Imds {
    endpoint: String,
    client: Agent,
    token: Mutex<Option<String>>,
}

/// An announced interruption of a spot instance (`spot/instance-action`).
#[derive(Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct InstanceAction {
    /// `stop`, `terminate` or `hibernate`.
    pub action: String,
    /// When EC2 takes the action.
    pub time: jiff::Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleCredentials {
    access_key_id: String,
    secret_access_key: String,
    token: String,
}

impl Imds {
    /// Creates a client for the service at this address.
    pub fn new(endpoint: &str) -> std::io::Result<Self> {
        Ok(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            // A proxy cannot reach a link-local address.
            client: http::client(&Trust::Anybody, TIMEOUT, None)?,
            token: Mutex::new(None),
        })
    }

    /// Reads a path below `latest/meta-data`; none if it does not exist.
    pub fn get(&self, path: &str) -> Result<Option<String>, Problem> {
        let url = format!("{}/latest/meta-data/{path}", self.endpoint);
        let mut is_fresh = false;
        loop {
            let known = self.known();
            let token = if let Some(token) = known {
                token
            } else {
                is_fresh = true;
                self.fetch()?
            };
            let request = self
                .client
                .get(&url)
                .header("X-aws-ec2-metadata-token", token);
            let (status, text) = http::answer(&url, request.call())?;
            match status {
                200 => return Ok(Some(text)),
                404 => return Ok(None),
                401 if !is_fresh => self.keep(None),
                status => {
                    let text = format!("{url}: HTTP {status}");
                    return Err(Problem::new(status.to_string(), text));
                }
            }
        }
    }

    /// Reads a path that must exist.
    pub fn need(&self, path: &str) -> Result<String, Problem> {
        self.get(path)?
            .ok_or_else(|| Problem::new("absent", format!("the metadata service has no {path}")))
    }

    /// The credentials of the instance's role.
    pub fn credentials(&self) -> Result<Credentials, Problem> {
        let roles = self.get(ROLES)?.unwrap_or_default();
        let Some(role) = roles.lines().next().filter(|role| !role.is_empty()) else {
            let text = "the instance has no role: name an instance profile (docs/activity.md)";
            return Err(Problem::new("role", text));
        };
        let text = self.need(&format!("{ROLES}{role}"))?;
        // An error text of serde would quote a secret.
        let found: RoleCredentials = serde_json::from_str(&text).map_err(|_| {
            Problem::new(
                "credentials",
                "the metadata service has no credentials of the role",
            )
        })?;
        Ok(Credentials::new(
            found.access_key_id,
            found.secret_access_key,
            Some(found.token),
            None,
            "imds",
        ))
    }

    /// The announced interruption; none without an announcement.
    pub fn instance_action(&self) -> Result<Option<InstanceAction>, Problem> {
        let Some(text) = self.get("spot/instance-action")? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Problem::new("instance-action", format!("spot/instance-action: {error}"))
        })
    }

    fn known(&self) -> Option<String> {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn keep(&self, token: Option<String>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    fn fetch(&self) -> Result<String, Problem> {
        let url = format!("{}/latest/api/token", self.endpoint);
        let request = self
            .client
            .put(&url)
            .header("X-aws-ec2-metadata-token-ttl-seconds", TOKEN_SECONDS);
        let (status, token) = http::answer(&url, request.send_empty())?;
        if status != 200 {
            let text = format!("{url}: HTTP {status}");
            return Err(Problem::new(status.to_string(), text));
        }
        self.keep(Some(token.clone()));
        Ok(token)
    }
}
