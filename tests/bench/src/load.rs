//! Calls in a closed loop: each of some callers calls again when it is answered.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::client::Client;
use crate::statistics::percentile;

/// What some calls took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    /// Of one call.
    pub(crate) p50: Duration,
    /// Of one call.
    pub(crate) p99: Duration,
    /// Calls per second.
    pub(crate) rate: f64,
}

/// Of how many calls one goes uncounted before: the processor's caches still hold
/// what ran before.
const WARM_UP: usize = 10;

/// How many calls are made in order to measure so many.
pub(crate) fn calls_of(measured: usize) -> usize {
    measured + measured / WARM_UP
}

/// Calls so many times in all, by so many callers at once, after a warm-up.
pub(crate) async fn measure(
    client: &Client,
    request: &Bytes,
    callers: usize,
    calls: usize,
) -> Outcome<Slice> {
    call(client, request, callers, calls / WARM_UP).await?;
    let began = Instant::now();
    let mut durations = call(client, request, callers, calls).await?;
    let took = began.elapsed();
    #[allow(clippy::cast_precision_loss, reason = "far fewer calls than 2^52")]
    let rate = durations.len() as f64 / took.as_secs_f64();
    Ok(Slice {
        p50: percentile(&mut durations, 50),
        p99: percentile(&mut durations, 99),
        rate,
    })
}

/// Calls, and answers how long each call took.
pub(crate) async fn call(
    client: &Client,
    request: &Bytes,
    callers: usize,
    calls: usize,
) -> Outcome<Vec<Duration>> {
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (client, request) = (client.clone(), request.clone());
        tasks.spawn(one_caller(client, request, calls.div_ceil(callers)));
    }
    let mut durations = Vec::with_capacity(calls);
    while let Some(task) = tasks.join_next().await {
        durations.extend(task??);
    }
    Ok(durations)
}

async fn one_caller(mut client: Client, request: Bytes, calls: usize) -> Outcome<Vec<Duration>> {
    let mut durations = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = Instant::now();
        client.run(request.clone()).await?;
        durations.push(began.elapsed());
    }
    Ok(durations)
}
