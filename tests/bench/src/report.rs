//! The figures as a table for people, and as JSON for machines.

use serde_json::{Value, json};

use crate::bars::MIB;
use crate::measurement::{Figures, Load, TOGETHER};
use crate::program::Program;

/// The space between two columns.
const GAP: &str = "  ";

type Row = [String; 12];

/// An aligned table with one line per program. `calls` is the number of calls after which the
/// memory was measured again.
pub(crate) fn table(programs: &[Program], figures: &[Figures], calls: usize) -> String {
    let together = format!("{TOGETHER} callers");
    let after = format!("{calls} calls");
    let titles = [
        [
            "", "1 caller", "", "", &together, "", "", "CPU", "memory", "after", "cold", "image",
        ],
        [
            "", "p50 ms", "p99 ms", "calls/s", "p50 ms", "p99 ms", "calls/s", "ms/call",
            "idle MiB", &after, "start ms", "gz MiB",
        ],
    ];
    let titles = titles.map(|row| row.map(str::to_owned));
    let lines = programs.iter().zip(figures);
    let rows: Vec<Row> = titles
        .into_iter()
        .chain(lines.map(|(program, figures)| row(program, figures)))
        .collect();
    let mut widths = [0; 12];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    rows.iter().map(|row| line(row, &widths)).collect()
}

/// All figures. The names of the fields contain the units.
pub(crate) fn json(programs: &[Program], figures: &[Figures]) -> Value {
    let functions = programs.iter().zip(figures).map(|(program, figures)| {
        json!({
            "name": program.name,
            "oneCaller": load(figures.alone),
            "sixteenCallers": load(figures.together),
            "processorMillisecondsPerCall": figures.processor,
            "idleBytes": figures.idle,
            "loadedBytes": figures.loaded,
            "coldStartMilliseconds": figures.cold_start,
            "compressedImageBytes": program.image,
        })
    });
    functions.collect()
}

fn load(load: Load) -> Value {
    json!({
        "p50Milliseconds": load.p50,
        "p99Milliseconds": load.p99,
        "callsPerSecond": load.rate,
    })
}

fn row(program: &Program, figures: &Figures) -> Row {
    let Figures {
        alone, together, ..
    } = figures;
    let mib = |bytes: f64| format!("{:.1}", bytes / MIB);
    [
        program.title.to_owned(),
        format!("{:.3}", alone.p50),
        format!("{:.3}", alone.p99),
        format!("{:.0}", alone.rate),
        format!("{:.2}", together.p50),
        format!("{:.2}", together.p99),
        format!("{:.0}", together.rate),
        format!("{:.3}", figures.processor),
        mib(figures.idle),
        mib(figures.loaded),
        format!("{:.0}", figures.cold_start),
        mib(program.image),
    ]
}

/// A line of the table. The first column is aligned to the left, the others to the right.
fn line(row: &Row, widths: &[usize]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(n, (cell, &width))| match n {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        })
        .collect();
    format!("{}\n", cells.join(GAP).trim_end())
}
