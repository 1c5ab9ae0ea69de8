//! Changes of claims' status, as Crossplane writes them.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::claims::{kind, name};
use crate::latency::State;
use crate::seen::{Clock, Numbers};

/// How many writes are under way at the same time when they are made as fast as possible.
const AT_ONCE: usize = 8;

/// The claims that change: the first one of each namespace.
#[derive(Clone)]
pub(crate) struct Claims {
    client: Client,
    namespaces: Arc<Vec<String>>,
    clock: Clock,
}

/// A change that was written.
pub(crate) struct Written {
    /// `at` is the moment at which the write was begun.
    pub(crate) state: State,
    /// How long the write took.
    pub(crate) took: Duration,
}

impl Claims {
    pub(crate) fn new(client: Client, namespaces: Vec<String>, clock: Clock) -> Self {
        Self {
            client,
            namespaces: Arc::new(namespaces),
            clock,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.namespaces.len()
    }

    pub(crate) fn numbers(&self) -> Numbers {
        let all = self.namespaces.iter().enumerate();
        all.map(|(number, namespace)| ((namespace.clone(), name(0)), number))
            .collect()
    }

    /// The number of the claim of a namespace.
    pub(crate) fn number(&self, namespace: &str) -> Option<usize> {
        self.namespaces.iter().position(|one| one == namespace)
    }

    /// Changes the claims in turns at a pace, whether or not the earlier writes are done.
    pub(crate) async fn at_pace(&self, count: u32, each: Duration) -> Outcome<Vec<Written>> {
        let begun = tokio::time::Instant::now();
        let mut writes = JoinSet::new();
        for number in 0..count {
            tokio::time::sleep_until(begun + each * number).await;
            let claims = self.clone();
            writes.spawn(async move { claims.change(number as usize % claims.count()).await });
        }
        let mut all = Vec::new();
        while let Some(written) = writes.join_next().await {
            all.push(written??);
        }
        all.sort_by_key(|written| written.state.version);
        Ok(all)
    }

    /// Changes the first claims in turns, as fast as possible.
    pub(crate) async fn at_once(&self, count: usize, claims: usize) -> Outcome<Vec<Written>> {
        stream::iter(0..count)
            .map(|number| self.change(number % claims.clamp(1, self.count())))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    async fn change(&self, claim: usize) -> Outcome<Written> {
        let claims: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespaces[claim], &kind());
        // A row shows the sum; each change has another one.
        let sum = fastrand::f64() * 1000.0;
        let patch = Patch::Merge(json!({"status": {"cost": {"soFarUsd": sum}}}));
        let at = self.clock.now();
        let written = claims
            .patch_status(&name(0), &PatchParams::default(), &patch)
            .await?;
        let version = written
            .metadata
            .resource_version
            .unwrap_or_default()
            .parse()?;
        Ok(Written {
            state: State { claim, version, at },
            took: self.clock.since(at),
        })
    }
}
