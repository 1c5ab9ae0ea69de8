//! Creates claims as the person.

use devctl_core::workspace::Workspace;
use http::HeaderMap;
use portal_core::key::{ANNOTATION, Key, Known};
use portal_core::problem::Problem;
use portal_core::view;
use serde_json::Value;

use super::preview;
use crate::app::{Portal, SignedIn};
use crate::cluster::AsPerson;
use crate::request::{audit, request_id};
use crate::rights::Actor;

/// A request that creates a claim.
pub(super) struct Creation<'a> {
    portal: &'a Portal,
    signed: &'a SignedIn,
    actor: &'a Actor,
    headers: &'a HeaderMap,
    key: Option<Key>,
}

impl<'a> Creation<'a> {
    /// The creation for a body, with the request's `Idempotency-Key`, if it has one.
    pub(super) fn of(
        portal: &'a Portal,
        signed: &'a SignedIn,
        actor: &'a Actor,
        headers: &'a HeaderMap,
        body: &Value,
    ) -> Result<Self, Problem> {
        let key = headers.get("idempotency-key");
        let key = key.map(|key| Key::new(key.to_str().unwrap_or_default(), body));
        Ok(Self {
            portal,
            signed,
            actor,
            headers,
            key: key.transpose()?,
        })
    }

    /// Some characters that are the same for each request with this key.
    pub(super) fn suffix(&self) -> Option<&str> {
        self.key.as_ref().map(Key::suffix)
    }

    /// Creates a claim that the platform allows. Returns what a request with the same key has made before.
    pub(super) async fn judged(&self, claim: Value) -> Result<Value, Problem> {
        let claim = self.with_key(claim);
        if let Some(made) = self.made(&claim)? {
            return Ok(made);
        }
        preview::judged(self.portal, self.actor, self.headers, &claim).await?;
        self.written(&claim).await
    }

    /// The same for the first API, whose dashboard shows what the function refuses.
    pub(super) async fn unjudged(&self, claim: Value) -> Result<Value, Problem> {
        let claim = self.with_key(claim);
        match self.made(&claim)? {
            Some(made) => Ok(made),
            None => self.written(&claim).await,
        }
    }

    fn with_key(&self, mut claim: Value) -> Value {
        if let Some(key) = &self.key {
            claim["metadata"]["annotations"][ANNOTATION] = key.annotation().into();
        }
        claim
    }

    /// The claim that a request with the same key has made; none for a new key.
    fn made(&self, claim: &Value) -> Result<Option<Value>, Problem> {
        let workspace = Workspace::new(claim);
        let (namespace, name) = (workspace.namespace(), workspace.name());
        if !self.actor.visible.has(namespace) {
            return Ok(None);
        }
        let known = self.portal.mirror.read()?.claim(namespace, name)?;
        known.map_or(Ok(None), |known| self.same(known))
    }

    fn same(&self, known: Value) -> Result<Option<Value>, Problem> {
        match self.key.as_ref().map(|key| key.known(&known)) {
            Some(Known::Same) => Ok(Some(known)),
            Some(Known::Reused) => Err(Key::reused()),
            Some(Known::Foreign) | None => Ok(None),
        }
    }

    /// Creates the claim. Returns it when the person's next list has it.
    async fn written(&self, claim: &Value) -> Result<Value, Problem> {
        let request = request_id(self.headers);
        let workspace = Workspace::new(claim);
        let (client, who) = (&self.portal.client, &self.actor.who);
        let person = AsPerson::new(client, who, workspace.namespace(), request);
        let answer = person.create(claim).await;
        let object = workspace.reference().to_string();
        let problem = answer.as_ref().err();
        audit(self.signed.person(), request, "create", &object, problem);
        let created = match answer {
            // Another request with the same key was faster.
            Err(problem) if problem.status == 409 && self.key.is_some() => {
                let there = person.get(workspace.name()).await?;
                self.same(there)?.ok_or(problem)?
            }
            answer => answer?,
        };
        self.portal.mirror.has(&created).await;
        Ok(view::without_managed_fields(created))
    }
}
