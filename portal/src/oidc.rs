//! Signing in at the provider of identities: `OpenID` Connect, authorization code with PKCE (S256).

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreErrorResponseType, CoreIdToken,
    CoreJwsSigningAlgorithm, CoreProviderMetadata,
};
use openidconnect::{
    AsyncHttpClient, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IssuerUrl, Nonce, NonceVerifier,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    Scope, TokenResponse,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::warn;

use crate::configuration::Issuer;
use crate::sessions::Renewal;

/// The largest answer of the provider, in bytes.
const LARGEST: usize = 256 * 1024;
/// How long the provider may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the keys of the provider are taken for its present ones.
const FRESH: Duration = Duration::from_mins(1);
/// How tokens may be signed. Signatures with a secret that both sides know are not among them.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 4] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
];

/// The scope with which a provider gives a token for later (`OpenID` Connect Core, "Offline Access").
const OFFLINE: &str = "offline_access";

/// The portal at a provider whose own description says where to sign in, and perhaps where to get tokens.
type RelyingParty = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The provider of identities.
pub(crate) struct Provider {
    issuer: Issuer,
    client: ClientId,
    secret: ClientSecret,
    redirect: RedirectUrl,
    http: Requests,
    /// What the provider said of itself, and when.
    known: Mutex<Option<(Instant, CoreProviderMetadata)>>,
}

/// What the browser keeps between the way to the provider and the way back. It holds nothing that the
/// person may not know, and it counts for this browser only.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Attempt {
    /// The random text that the provider sends back.
    pub(crate) state: String,
    nonce: String,
    verifier: String,
    /// The page to which the person wanted to go.
    pub(crate) return_to: String,
}

/// What the provider says of a person.
pub(crate) struct Told {
    /// The claims of the ID token.
    pub(crate) claims: Map<String, Value>,
    /// How the portal asks again later; none if the provider gives no way.
    pub(crate) renewal: Option<Renewal>,
}

/// What the provider says of a person later.
pub(crate) struct ToldAgain {
    /// The claims of a new ID token; none if the provider gives no new one.
    pub(crate) claims: Option<Map<String, Value>>,
    /// How the portal asks the next time.
    pub(crate) renewal: Renewal,
}

/// Why a sign-in fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the provider of identities cannot be reached: {0}")]
    OutOfReach(String),
    #[error("the answer does not belong to this attempt to sign in: start again")]
    Foreign,
    #[error("the answer comes from another provider of identities than {0}")]
    Issuer(String),
    #[error("the provider of identities does not accept the sign-in: {0}")]
    Refused(String),
    #[error("the token of the provider of identities is not valid: {0}")]
    Token(String),
}

impl Provider {
    /// The provider of an issuer.
    pub(crate) fn new(
        issuer: Issuer,
        client: String,
        secret: String,
        redirect: String,
        tls: rustls::ClientConfig,
    ) -> Result<Self, openidconnect::url::ParseError> {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build();
        let executor = hyper_util::rt::TokioExecutor::new();
        Ok(Self {
            issuer,
            client: ClientId::new(client),
            secret: ClientSecret::new(secret),
            redirect: RedirectUrl::new(redirect)?,
            http: Requests(Http::builder(executor).build(connector)),
            known: Mutex::default(),
        })
    }

    /// Begins to sign in. Returns the address at the provider, and what the browser keeps.
    pub(crate) async fn begin(&self, return_to: String) -> Result<(String, Attempt), Error> {
        let client = self.relying_party().await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let offline = self.gives_tokens_for_later().await?.then_some(OFFLINE);
        let scopes = ["email", "profile", "groups"].into_iter().chain(offline);
        let scopes = scopes.map(|name| Scope::new(name.to_owned()));
        let (url, state, nonce) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                CsrfToken::new_random,
                Nonce::new_random,
            )
            .add_scopes(scopes)
            .set_pkce_challenge(challenge)
            .url();
        let attempt = Attempt {
            state: state.into_secret(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            return_to,
        };
        Ok((url.into(), attempt))
    }

    /// Ends to sign in. `issuer` is the parameter `iss` of the answer (RFC 9207).
    pub(crate) async fn end(
        &self,
        attempt: Attempt,
        state: &str,
        issuer: Option<&str>,
        code: String,
    ) -> Result<Told, Error> {
        if verify_slices_are_equal(attempt.state.as_bytes(), state.as_bytes()).is_err() {
            return Err(Error::Foreign);
        }
        if issuer.is_some_and(|issuer| issuer != self.issuer.url) {
            return Err(Error::Issuer(self.issuer.url.clone()));
        }
        let client = self.relying_party().await?;
        let exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| Error::OutOfReach(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(attempt.verifier));
        let answered = exchange.request_async(&self.http).await;
        let answer = answered.map_err(|error| Error::Refused(chain(&error)))?;
        let missing = || Error::Token("there is none".to_owned());
        let token = answer.id_token().ok_or_else(missing)?;
        let claims = verified(&client, token, &Nonce::new(attempt.nonce))?;
        let renewal = answer.refresh_token().and_then(|token| {
            Some(Renewal {
                token: token.clone(),
                subject: subject(&claims)?.to_owned(),
            })
        });
        Ok(Told { claims, renewal })
    }

    /// Asks for a person again who has signed in. The provider may tell nothing new.
    pub(crate) async fn tell_again(&self, renewal: &Renewal) -> Result<ToldAgain, Error> {
        let client = self.relying_party().await?;
        let exchange = client
            .exchange_refresh_token(&renewal.token)
            .map_err(|error| Error::OutOfReach(error.to_string()))?;
        let answered = exchange.request_async(&self.http).await;
        let answer = answered.map_err(|error| match &error {
            RequestTokenError::ServerResponse(said)
                if *said.error() == CoreErrorResponseType::InvalidGrant =>
            {
                Error::Refused(chain(&error))
            }
            // Nothing is said about the person.
            _ => Error::OutOfReach(chain(&error)),
        })?;
        // A later token may have no nonce (OpenID Connect Core, "Successful Refresh Response").
        let any = |_: Option<&Nonce>| Ok(());
        let told = answer.id_token();
        let told = told
            .map(|token| verified(&client, token, any))
            .transpose()?;
        let is_other = |claims: &Map<String, Value>| subject(claims) != Some(&renewal.subject);
        if told.as_ref().is_some_and(is_other) {
            return Err(Error::Token("it is another person's".to_owned()));
        }
        let token = answer.refresh_token().unwrap_or(&renewal.token);
        Ok(ToldAgain {
            claims: told,
            renewal: Renewal {
                token: token.clone(),
                subject: renewal.subject.clone(),
            },
        })
    }

    async fn gives_tokens_for_later(&self) -> Result<bool, Error> {
        let metadata = self.metadata().await?;
        let scopes = metadata.scopes_supported();
        let is_offline = |scope: &Scope| scope.as_str() == OFFLINE;
        Ok(scopes.is_some_and(|scopes| scopes.iter().any(is_offline)))
    }

    /// The portal at the provider.
    async fn relying_party(&self) -> Result<RelyingParty, Error> {
        let secret = Some(self.secret.clone());
        let metadata = self.metadata().await?;
        let client = CoreClient::from_provider_metadata(metadata, self.client.clone(), secret);
        Ok(client.set_redirect_uri(self.redirect.clone()))
    }

    /// How tokens become people.
    pub(crate) fn mapping(&self) -> &portal_core::identity::Mapping {
        &self.issuer.mapping
    }

    /// What the provider says of itself, with its keys. It is asked once a minute at most, whatever the
    /// number of people who sign in.
    async fn metadata(&self) -> Result<CoreProviderMetadata, Error> {
        let mut known = self.known.lock().await;
        if let Some((since, metadata)) = &*known
            && since.elapsed() < FRESH
        {
            return Ok(metadata.clone());
        }
        let metadata = self.discover().await?;
        *known = Some((Instant::now(), metadata.clone()));
        Ok(metadata)
    }

    async fn discover(&self) -> Result<CoreProviderMetadata, Error> {
        let url = IssuerUrl::new(self.issuer.url.clone())
            .map_err(|error| Error::OutOfReach(error.to_string()))?;
        let found = CoreProviderMetadata::discover_async(url, &self.http).await;
        found.map_err(|error| {
            let error = chain(&error);
            warn!(
                error,
                issuer = self.issuer.url,
                "cannot read the provider of identities"
            );
            Error::OutOfReach(error)
        })
    }
}

/// Requests to the provider.
struct Requests(Http<HttpsConnector<HttpConnector>, Full<bytes::Bytes>>);

impl Requests {
    /// Sends a request. A redirect is an answer like others, and nobody follows it.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Failed> {
        let failed = |error: &dyn std::error::Error| Failed(chain(error));
        let request = request.map(|body| Full::new(bytes::Bytes::from(body)));
        let answer = self.0.request(request).await;
        let (head, body) = answer.map_err(|error| failed(&error))?.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| failed(error.as_ref()))?;
        Ok(http::Response::from_parts(head, body.to_bytes().to_vec()))
    }
}

impl<'c> AsyncHttpClient<'c> for Requests {
    type Error = Failed;
    type Future = BoxFuture<'c, Result<HttpResponse, Failed>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async {
            match tokio::time::timeout(PATIENCE, self.send(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(Failed(format!(
                    "no answer in {} seconds",
                    PATIENCE.as_secs()
                ))),
            }
        })
    }
}

/// Why the provider gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// TLS for requests to the provider: the certificate authority of the configuration, or those of the
/// system.
pub(crate) fn trusted(authority: Option<&str>) -> Result<rustls::ClientConfig, Untrusted> {
    let mut roots = rustls::RootCertStore::empty();
    match authority {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.add(certificate?)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The certificate authority of the provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untrusted {
    #[error("jwt[].issuer.certificateAuthority: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    #[error("jwt[].issuer.certificateAuthority: {0}")]
    Certificate(#[from] rustls::Error),
}

/// Checks an ID token, and returns all its claims. The library types those of its standard only.
fn verified(
    client: &RelyingParty,
    token: &CoreIdToken,
    nonce: impl NonceVerifier,
) -> Result<Map<String, Value>, Error> {
    let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
    token
        .claims(&verifier, nonce)
        .map_err(|error| Error::Token(chain(&error)))?;
    let malformed = || Error::Token("its claims are no object".to_owned());
    claims(&token.to_string()).ok_or_else(malformed)
}

/// All claims of a token. The caller has checked its signature.
pub(crate) fn claims(token: &str) -> Option<Map<String, Value>> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&payload).ok()
}

fn subject(claims: &Map<String, Value>) -> Option<&str> {
    claims.get("sub")?.as_str()
}

/// The message of an error and of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}
