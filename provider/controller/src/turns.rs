//! Limits how many new pools begin at a time.

use std::sync::Arc;

use api::pool::SpotPool;
use jiff::Timestamp;
use kube::runtime::controller::Action as Requeue;

use crate::context::Context;
use crate::reconcile::{ReconcileError, reconcile};

/// Reconciles a pool if it is its turn; otherwise tries again at its turn.
pub async fn reconcile_in_turn(
    pool: Arc<SpotPool>,
    context: Arc<Context>,
) -> Result<Requeue, ReconcileError> {
    let now = Timestamp::now();
    let wait = context.beginnings.turn(&pool, now).duration_since(now);
    match wait.try_into() {
        Ok(wait) if wait > std::time::Duration::ZERO => Ok(Requeue::requeue(wait)),
        _ => reconcile(pool, context).await,
    }
}
