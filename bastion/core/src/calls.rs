//! devctl's API server, at the other end of something that answers calls.

use std::time::Duration;

use async_trait::async_trait;
use devctl_core::host::{Api, Change, Effect, Refused, Scope};
use devctl_core::object::{Kind, Reference};
use jiff::Timestamp;
use serde_json::Value;

use crate::protocol::{Call, Reply};

/// Answers calls: a broker, or a bastion by way of ssh.
#[async_trait]
pub trait Caller: Send + Sync {
    /// The namespace of the person.
    fn namespace(&self) -> &str;
    /// Does an operation.
    async fn call(&self, call: Call) -> Result<Reply, Refused>;
}

/// The API server of a caller.
pub struct Remote<C>(pub C);

/// The answer to another question.
fn unexpected<T>() -> Result<T, Refused> {
    Err(Refused {
        message: "the bastion answered another question".to_owned(),
        ..Refused::default()
    })
}

#[async_trait]
impl<C: Caller> Api for Remote<C> {
    fn namespace(&self) -> &str {
        self.0.namespace()
    }

    async fn get(&self, object: &Reference) -> Result<Value, Refused> {
        match self.0.call(Call::Get(object.clone())).await? {
            Reply::Object(object) => Ok(object),
            _ => unexpected(),
        }
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Value>, Refused> {
        match self.0.call(Call::List(kind, scope.clone())).await? {
            Reply::Objects(objects) => Ok(objects),
            _ => unexpected(),
        }
    }

    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused> {
        match self.0.call(Call::Create(object.clone(), effect)).await? {
            Reply::Object(object) => Ok(object),
            _ => unexpected(),
        }
    }

    async fn patch(
        &self,
        object: &Reference,
        patch: &Value,
        effect: Effect,
    ) -> Result<Value, Refused> {
        let call = Call::Patch(object.clone(), patch.clone(), effect);
        match self.0.call(call).await? {
            Reply::Object(object) => Ok(object),
            _ => unexpected(),
        }
    }

    async fn delete(&self, object: &Reference, uid: &str) -> Result<(), Refused> {
        let call = Call::Delete(object.clone(), uid.to_owned());
        self.0.call(call).await.map(drop)
    }

    async fn changed(
        &self,
        object: &Reference,
        version: &str,
        longest: Duration,
    ) -> Result<Change, Refused> {
        let call = Call::Changed(object.clone(), version.to_owned(), longest);
        match self.0.call(call).await? {
            Reply::Change(change) => Ok(change),
            _ => unexpected(),
        }
    }

    async fn may(&self, verb: &str, kind: Kind, namespace: &str) -> Result<bool, Refused> {
        let call = Call::May(verb.to_owned(), kind, namespace.to_owned());
        match self.0.call(call).await? {
            Reply::Flag(may) => Ok(may),
            _ => unexpected(),
        }
    }

    async fn time(&self) -> Result<Timestamp, Refused> {
        match self.0.call(Call::Time).await? {
            Reply::Time(time) => Ok(time),
            _ => unexpected(),
        }
    }
}
