//! `make bench-function`: measures the cost of a call of the function. The benchmark compares the
//! function with an empty function on the same SDK, with functions on Go's and Python's SDK that
//! give the same output, and with the transport alone, which is the lower limit. All programs get
//! the same request, on the same machine, in the same run, and are in one table.
//!
//! The client calls each program by mTLS, as Crossplane does, over one connection. [`measurement`]
//! says what is measured, [`bars`] what is promised.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod agreement;
mod bars;
mod certificates;
mod client;
mod image;
mod load;
mod machine;
mod managed_fields;
mod measurement;
mod program;
mod report;
mod request;
mod server;
mod statistics;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use local_cluster::cache::Cache;
use serde_json::json;

use crate::bars::Bar;
use crate::machine::Processors;
use crate::measurement::{Extent, Figures};
use crate::program::Program;
use crate::request::Measured;
use crate::server::Surroundings;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measure the function beside an empty one, Go's and Python's
#[derive(Parser)]
struct Arguments {
    /// How often each program's turn comes
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// Calls of one turn, by one caller and again by sixteen
    #[arg(long, default_value_t = 400)]
    calls: usize,
    /// After how many calls memory is measured again
    #[arg(long, default_value_t = 100_000)]
    memory_after: usize,
    /// How often each program is started
    #[arg(long, default_value_t = 9)]
    starts: usize,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the programs and prints the figures. Returns whether every promise is kept.
fn run(arguments: &Arguments) -> Outcome<bool> {
    let root = root();
    let folder = program::target(&root).join("bench-function");
    fs::create_dir_all(&folder)?;
    let cache = Cache::from_environment()?;
    let answer = folder.join("answer.pb");
    let programs = program::build(&root, &folder, &cache, &answer)?;
    let request = request::load(&root)?;
    // The benchmark does not read this file. A developer can look at it, or send it.
    fs::write(folder.join("request.pb"), &request.bytes)?;
    let around = Surroundings {
        tls: certificates::create(&folder)?,
        folder,
        user_data: root.join("function/ec2/src/user_data"),
        processors: Processors::available()?,
    };
    for warning in machine::warnings(around.processors)? {
        eprintln!("warning: {warning}");
    }
    let extent = Extent {
        starts: arguments.starts,
        rounds: arguments.rounds,
        calls: arguments.calls,
        until: arguments.memory_after,
    };
    around.processors.to_client()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let [function, ..] = &programs;
    runtime.block_on(measurement::record(function, &request, &around, &answer))?;
    let figures = runtime.block_on(measurement::run(&programs, &request, &around, extent))?;
    let bars = bars::of(&programs, &figures);
    match arguments.output {
        Output::Table => print_table(&programs, &figures, &bars, &request, extent),
        Output::Json => print_json(&programs, &figures, &bars, &request),
    }
    Ok(bars.iter().all(Bar::met))
}

fn print_table(
    programs: &[Program],
    figures: &[Figures; program::COUNT],
    bars: &[Bar],
    request: &Measured,
    extent: Extent,
) {
    println!();
    print!("{}", report::table(programs, figures, extent.until));
    println!(
        "\nmTLS; a request of {:.1} KiB; medians of {} rounds; Python's image without Python",
        request.kib(),
        extent.rounds
    );
    for missed in bars.iter().filter_map(Bar::missed) {
        println!("{missed}");
    }
    println!("{}", bars::summary(bars, figures));
}

fn print_json(
    programs: &[Program],
    figures: &[Figures; program::COUNT],
    bars: &[Bar],
    request: &Measured,
) {
    let report = json!({
        "transport": "mTLS",
        "requestBytes": request.bytes.len(),
        "functions": report::json(programs, figures),
        "bars": bars.iter().map(Bar::json).collect::<Vec<_>>(),
        "summary": bars::summary(bars, figures),
    });
    println!("{report:#}");
}

/// The repository's root, by the same path that xtask uses: Cargo compiles the programs anew if
/// `RUSTC_WORKSPACE_WRAPPER` has another path.
fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2).map(PathBuf::from);
    root.unwrap_or(manifest)
}
