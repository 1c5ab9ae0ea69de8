//! The write-ahead as a type: only what was persisted can be asked of EC2.

use async_trait::async_trait;
use provider_core::Observed;

/// Persists launches, bindings and ends before EC2 is called.
#[async_trait]
pub trait WriteAhead: Send {
    /// Writes the launches, bindings, ends and home of `observed` to the pool's status, where they
    /// survive a crash. The write fails if another client wrote since they were read, even if
    /// nothing differs.
    async fn persist(&mut self, observed: &Observed) -> Result<(), kube::Error>;
}

/// Something that the pool's status holds, so that it survives a crash. Only the write makes one.
#[derive(Debug)]
pub(super) struct Persisted<T>(T);

impl<T> Persisted<T> {
    /// Writes the status, which holds `what` as part of `observed`. The write fails if another
    /// client wrote since the status was read: so no other provider acts on an older one.
    pub(super) async fn write<W: WriteAhead>(
        write_ahead: &mut W,
        observed: &Observed,
        what: T,
    ) -> Result<Self, kube::Error> {
        write_ahead.persist(observed).await?;
        Ok(Self(what))
    }

    /// What was persisted.
    pub(super) fn get(&self) -> &T {
        &self.0
    }

    /// Each of the things of one kind that were persisted together.
    pub(super) fn each<'a, U>(
        &'a self,
        of_kind: impl Fn(&'a T) -> &'a [U],
    ) -> impl Iterator<Item = Persisted<&'a U>>
    where
        U: 'a,
    {
        of_kind(&self.0).iter().map(Persisted)
    }
}
