//! Measures all programs. They take turns in many rounds, so that a disturbance of the machine
//! affects all of them in the same way.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use local_cluster::progress::Progress;
use tokio::task::JoinSet;

use crate::load::{self, Slice};
use crate::program::{Answer, Program};
use crate::request::Measured;
use crate::server::{Server, Surroundings};
use crate::statistics::median;
use crate::{Outcome, agreement};

/// How many callers there are in the second load of a turn. The first load has one caller.
pub(crate) const TOGETHER: usize = 16;

/// The extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// How often each program starts.
    pub(crate) starts: usize,
    /// How many turns each program has.
    pub(crate) rounds: usize,
    /// How many calls a turn measures with one caller, and again with all callers.
    pub(crate) calls: usize,
    /// After how many calls of a program the memory is measured again.
    pub(crate) until: usize,
}

/// The figures of a program. Those of starts and loads are medians.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// The time from the start until the program serves, in milliseconds.
    pub(crate) cold_start: f64,
    /// Resident memory before the first call, in bytes.
    pub(crate) idle: f64,
    /// Resident memory after many calls, in bytes.
    pub(crate) loaded: f64,
    /// The mean processor time of a call, in milliseconds.
    pub(crate) processor: f64,
    /// The load with one caller.
    pub(crate) alone: Load,
    /// The load with many callers.
    pub(crate) together: Load,
}

/// The figures of calls under one load: medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The median duration of a call, in milliseconds.
    pub(crate) p50: f64,
    /// The 99th percentile of the duration of a call, in milliseconds.
    pub(crate) p99: f64,
    /// Calls per second.
    pub(crate) rate: f64,
}

impl Load {
    fn of(slices: &[Slice]) -> Self {
        let over = |figure: fn(&Slice) -> f64| median(slices.iter().map(figure));
        Self {
            p50: over(|slice| slice.p50.as_secs_f64() * 1e3),
            p99: over(|slice| slice.p99.as_secs_f64() * 1e3),
            rate: over(|slice| slice.rate),
        }
    }
}

/// A program that is being measured, and its figures so far.
struct Subject<'a> {
    program: &'a Program,
    server: Server,
    cold_starts: Vec<f64>,
    idle: Vec<f64>,
    /// The processor time in all turns, in milliseconds.
    processor: f64,
    /// The number of calls in all turns.
    calls: usize,
    alone: Vec<Slice>,
    together: Vec<Slice>,
}

/// Calls a program once, and writes its answer to a file. The bare transport answers with this
/// file.
pub(crate) async fn record(
    program: &Program,
    request: &Measured,
    around: &Surroundings,
    to: &Path,
) -> Outcome<()> {
    let mut server = Server::start(program, around).await?;
    fs::write(to, server.client.run(request.bytes.clone()).await?)?;
    Ok(())
}

/// Measures all programs. The figures are in the order of the programs. Every answer must be equal
/// to that of the first program, except the empty function's, which must echo the request.
pub(crate) async fn run<const N: usize>(
    programs: &[Program; N],
    request: &Measured,
    around: &Surroundings,
    extent: Extent,
) -> Outcome<[Figures; N]> {
    let progress = Progress::to_stderr();
    let step = progress.begin(&format!("start each program {} times", extent.starts));
    let mut subjects = Vec::with_capacity(N);
    for program in programs {
        subjects.push(Subject::start(program, around).await?);
    }
    for _ in 1..extent.starts {
        for subject in &mut subjects {
            subject.restart(around).await?;
        }
    }
    step.end("");

    let step = progress.begin("compare the answers");
    compare(&mut subjects, request).await?;
    step.end("equal");

    let step = progress.begin(&format!("measure in {} rounds", extent.rounds));
    for _ in 0..extent.rounds {
        for subject in &mut subjects {
            subject.turn(&request.bytes, extent.calls).await?;
        }
    }
    step.end("");

    let step = progress.begin(&format!("call each until {} calls", extent.until));
    let figures = finish(&subjects, &request.bytes, around, extent).await?;
    step.end("");
    figures
        .try_into()
        .map_err(|_| "a program is missing from the figures".into())
}

async fn compare(subjects: &mut [Subject<'_>], request: &Measured) -> Outcome<()> {
    let mut own: Option<Bytes> = None;
    for subject in subjects {
        let answer = subject.server.client.run(request.bytes.clone()).await?;
        match (subject.program.answer, &own) {
            (Answer::Echo, _) => agreement::check_echo(&answer, &request.message)?,
            (Answer::Decision, None) => own = Some(answer),
            (Answer::Decision, Some(own)) => {
                agreement::check(subject.program.name, &answer, own)?;
            }
            (Answer::Recorded, own) => agreement::check_recorded(&answer, own.as_ref())?,
        }
    }
    Ok(())
}

impl<'a> Subject<'a> {
    async fn start(program: &'a Program, around: &Surroundings) -> Outcome<Self> {
        let server = Server::start(program, around).await?;
        let mut subject = Self {
            program,
            cold_starts: Vec::new(),
            idle: Vec::new(),
            processor: 0.0,
            calls: 0,
            alone: Vec::new(),
            together: Vec::new(),
            server,
        };
        subject.note_start()?;
        Ok(subject)
    }

    async fn restart(&mut self, around: &Surroundings) -> Outcome<()> {
        self.server = Server::start(self.program, around).await?;
        self.note_start()
    }

    fn note_start(&mut self) -> Outcome<()> {
        let took = self.server.cold_start.as_secs_f64();
        self.cold_starts.push(took * 1e3);
        self.idle.push(self.server.resident()?);
        Ok(())
    }

    async fn turn(&mut self, request: &Bytes, calls: usize) -> Outcome<()> {
        let client = &self.server.client;
        let before = self.server.processor_time()?;
        self.alone
            .push(load::measure(client, request, 1, calls).await?);
        self.together
            .push(load::measure(client, request, TOGETHER, calls).await?);
        self.processor += self.server.processor_time()? - before;
        self.calls += 2 * load::calls_of(calls);
        Ok(())
    }

    fn figures(&self) -> Outcome<Figures> {
        #[allow(clippy::cast_precision_loss, reason = "far fewer calls than 2^52")]
        let calls = self.calls as f64;
        Ok(Figures {
            cold_start: median(self.cold_starts.iter().copied()),
            idle: median(self.idle.iter().copied()),
            processor: self.processor / calls,
            loaded: self.server.resident()?,
            alone: Load::of(&self.alone),
            together: Load::of(&self.together),
        })
    }
}

/// Calls all programs at the same time, until each has been called [`Extent::until`] times, and
/// then collects the figures, which include the memory after these calls.
async fn finish(
    subjects: &[Subject<'_>],
    request: &Bytes,
    around: &Surroundings,
    extent: Extent,
) -> Outcome<Vec<Figures>> {
    let mut tasks = JoinSet::new();
    for subject in subjects {
        let left = extent.until.saturating_sub(subject.calls);
        around.processors.release(subject.server.id())?;
        let (client, request) = (subject.server.client.clone(), request.clone());
        tasks.spawn(async move { load::call(&client, &request, TOGETHER, left).await });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    subjects.iter().map(Subject::figures).collect()
}
