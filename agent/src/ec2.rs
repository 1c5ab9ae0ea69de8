//! Sends reports to a tag of the agent's own instance.

use std::time::{Duration, SystemTime};

use activity_report::{HOST_KEY, REPORT, Report, SETUP, setup};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use ureq::{Agent, Proxy};

use crate::http::{self, Trust};
use crate::imds::Imds;
use crate::log::Problem;
use crate::places::Places;

const TIMEOUT: Duration = Duration::from_secs(20);
const VERSION: &str = "2016-11-15";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// The setup script writes its result there.
const SETUP_FILE: &str = "/var/lib/gpu-workspace/setup";
const HOST_KEY_FILE: &str = "/etc/ssh/ssh_host_ed25519_key.pub";

/// The agent's own instance.
pub struct Ec2 {
    imds: Imds,
    endpoint: Option<String>,
    client: Agent,
    places: Places,
    /// The host key in the instance's tag.
    host_key: Option<String>,
    /// The result of the setup in the instance's tag.
    setup: Option<String>,
}

/// A signed request.
struct Signed {
    body: String,
    headers: Vec<(String, String)>,
}

impl Ec2 {
    /// Creates a client for the instance of this metadata service. `endpoint` replaces the EC2
    /// endpoint of the region.
    pub fn new(imds: Imds, endpoint: Option<String>, places: Places) -> std::io::Result<Self> {
        let client = http::client(&Trust::Machine, TIMEOUT, Proxy::try_from_env())?;
        Ok(Self {
            imds,
            endpoint,
            client,
            places,
            host_key: None,
            setup: None,
        })
    }

    /// Writes the report to a tag of the instance, and the host key to another tag if it has
    /// changed.
    pub fn send(&mut self, report: &Report, now: SystemTime) -> Result<(), Problem> {
        let mut tags = vec![(REPORT, report.to_string())];
        let host_key = self
            .host_key()
            .filter(|key| self.host_key.as_ref() != Some(key));
        if let Some(key) = &host_key {
            tags.push((HOST_KEY, key.clone()));
        }
        self.tag(&tags, now)?;
        if host_key.is_some() {
            self.host_key = host_key;
        }
        Ok(())
    }

    /// Writes the result of the setup to a tag of the instance. None if there is no other result
    /// than the one that the agent wrote last.
    pub fn send_setup(&mut self, now: SystemTime) -> Option<Result<(), Problem>> {
        let text = std::fs::read_to_string(self.places.at(SETUP_FILE)).ok()?;
        let result = text.trim_end();
        setup::read(result)?;
        if self.setup.as_deref() == Some(result) {
            return None;
        }
        let sent = self.tag(&[(SETUP, result.to_owned())], now);
        Some(sent.map(|()| self.setup = Some(result.to_owned())))
    }

    fn tag(&self, tags: &[(&str, String)], now: SystemTime) -> Result<(), Problem> {
        let instance = self.imds.need("instance-id")?;
        let region = self.imds.need("placement/region")?;
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!(
                "https://ec2.{region}.{}",
                self.imds.need("services/domain")?
            ),
        };
        let url = format!("{}/", endpoint.trim_end_matches('/'));
        let signed = request(
            &url,
            &region,
            self.imds.credentials()?,
            &instance,
            tags,
            now,
        )
        .map_err(|error| Problem::new("signature", error))?;
        let mut request = self.client.post(&url);
        for (name, value) in &signed.headers {
            request = request.header(name, value);
        }
        let (status, text) = http::answer(&url, request.send(&signed.body))?;
        if status != 200 {
            return Err(refusal(status, &text));
        }
        Ok(())
    }

    /// The host key without its comment, which may name a person or hold characters that a tag must
    /// not have.
    fn host_key(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.places.at(HOST_KEY_FILE)).ok()?;
        let mut words = text.split_ascii_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    }
}

/// Builds a signed `CreateTags` request.
fn request(
    url: &str,
    region: &str,
    credentials: Credentials,
    instance: &str,
    tags: &[(&str, String)],
    now: SystemTime,
) -> Result<Signed, String> {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", "CreateTags");
    form.append_pair("Version", VERSION);
    form.append_pair("ResourceId.1", instance);
    for (number, (key, value)) in (1..).zip(tags) {
        form.append_pair(&format!("Tag.{number}.Key"), key);
        form.append_pair(&format!("Tag.{number}.Value"), value);
    }
    let body = form.finish();
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("ec2")
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let headers = [("content-type", FORM)];
    let signable = SignableRequest::new(
        "POST",
        url,
        headers.into_iter(),
        SignableBody::Bytes(body.as_bytes()),
    )
    .map_err(|error| error.to_string())?;
    let signed = sign(signable, &parameters).map_err(|error| error.to_string())?;
    let (instructions, _) = signed.into_parts();
    let signature = instructions.headers();
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let headers = headers.into_iter().chain(signature).map(owned).collect();
    Ok(Signed { body, headers })
}

/// The problem in an error response of EC2.
fn refusal(status: u16, text: &str) -> Problem {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0)
    };
    let code = element("Code").unwrap_or("no code");
    let message = element("Message").unwrap_or_default();
    let hint = match code {
        "UnauthorizedOperation" => "; the role needs docs/aws/agent.json",
        _ => "",
    };
    let text = format!("CreateTags: HTTP {status}, {code}: {message}{hint}");
    Problem::new(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_names_its_code_and_the_next_step() {
        let text = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not</Message></Error></Errors></Response>";
        let problem = refusal(403, text);
        assert_eq!(problem.kind, "UnauthorizedOperation");
        assert!(
            problem.text.ends_with("docs/aws/agent.json"),
            "{}",
            problem.text
        );
        assert_eq!(refusal(503, "").kind, "no code");
    }
}
