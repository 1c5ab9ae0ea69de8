//! Calls in a closed loop: each caller makes its next call when it has the answer to the last one.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::client::Client;
use crate::statistics::percentile;

/// The figures of a number of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    /// The median duration of a call.
    pub(crate) p50: Duration,
    /// The 99th percentile of the duration of a call.
    pub(crate) p99: Duration,
    /// Calls per second.
    pub(crate) rate: f64,
}

/// The number of measured calls for which one warm-up call is made before. A program needs a
/// warm-up because the processor's caches still have the data of the program that ran before it.
const WARM_UP: usize = 10;

/// The number of measured calls and warm-up calls together.
pub(crate) fn calls_of(measured: usize) -> usize {
    measured + measured / WARM_UP
}

/// Measures `calls` calls in all, made by `callers` callers at once, after a warm-up.
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

/// Makes the calls, and returns the duration of each one. The number of calls is rounded up to a
/// multiple of the callers.
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
