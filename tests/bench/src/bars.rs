//! The limits that the function promises to keep, and whether it keeps them.

use serde_json::{Value, json};

use crate::measurement::Figures;
use crate::program::{COUNT, Program};

/// The bytes of a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// The most that a call may take, as a multiple of a call of the empty function.
const ABOVE_EMPTY: f64 = 1.15;
/// The least that a call of the function on Go's SDK takes, as a multiple of a call of this
/// function.
const FASTER_THAN_GO: f64 = 6.0;
/// The least that a call of the function on Python's SDK takes, as such a multiple.
const FASTER_THAN_PYTHON: f64 = 10.0;
/// The largest size of the image, and the most memory when idle, in MiB.
const SIZE: f64 = 15.0;
/// The longest time from the start until the function serves, in milliseconds.
const COLD_START: f64 = 100.0;

/// A promise and the measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    what: &'static str,
    unit: &'static str,
    is: f64,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// All promises. The programs and their figures are in this order: this function, the empty
/// function, Go's, Python's, and the transport alone, about which there is no promise.
pub(crate) fn of(programs: &[Program; COUNT], figures: &[Figures; COUNT]) -> [Bar; 6] {
    let [own, empty, go, python, _] = figures.map(|figures| figures.alone.p50);
    let [function, ..] = figures;
    let bar = |what, unit, is, limit| Bar {
        what,
        unit,
        is,
        limit,
    };
    [
        bar("p50", "x empty", own / empty, Limit::AtMost(ABOVE_EMPTY)),
        bar(
            "p50",
            "x faster than Go",
            go / own,
            Limit::AtLeast(FASTER_THAN_GO),
        ),
        bar(
            "p50",
            "x faster than Python",
            python / own,
            Limit::AtLeast(FASTER_THAN_PYTHON),
        ),
        bar(
            "image",
            " MiB",
            programs[0].image / MIB,
            Limit::AtMost(SIZE),
        ),
        bar(
            "idle memory",
            " MiB",
            function.idle / MIB,
            Limit::AtMost(SIZE),
        ),
        bar(
            "cold start",
            " ms",
            function.cold_start,
            Limit::AtMost(COLD_START),
        ),
    ]
}

impl Bar {
    /// Whether the promise is kept.
    pub(crate) fn met(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.is <= limit,
            Limit::AtLeast(limit) => self.is >= limit,
        }
    }

    /// A message for people about a promise that is not kept.
    pub(crate) fn missed(&self) -> Option<String> {
        let (than, limit) = match self.limit {
            Limit::AtMost(limit) => ("more than", limit),
            Limit::AtLeast(limit) => ("less than", limit),
        };
        let Self { what, unit, is, .. } = self;
        (!self.met()).then(|| format!("missed: {what} is {is:.2}{unit}, {than} {limit}"))
    }

    /// The promise and the figure for machines.
    pub(crate) fn json(&self) -> Value {
        let (key, limit) = match self.limit {
            Limit::AtMost(limit) => ("atMost", limit),
            Limit::AtLeast(limit) => ("atLeast", limit),
        };
        json!({
            "what": self.what,
            "unit": self.unit.trim(),
            "is": self.is,
            key: limit,
            "met": self.met(),
        })
    }
}

/// All ratios in one line. No promise limits the ratio to the transport alone.
pub(crate) fn summary(bars: &[Bar], figures: &[Figures; COUNT]) -> String {
    let [own, .., transport] = figures.map(|figures| figures.alone.p50);
    let ratios: Vec<String> = bars
        .iter()
        .filter(|bar| bar.what == "p50")
        .map(|bar| {
            format!(
                "{:.*}{}",
                if bar.is < 2.0 { 2 } else { 1 },
                bar.is,
                bar.unit
            )
        })
        .collect();
    let ratios = ratios.join(", ");
    format!("p50: {ratios}, {:.1}x the transport alone", own / transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Load;
    use crate::program::Answer;

    fn figures(p50: f64, idle: f64, cold_start: f64) -> Figures {
        let load = Load {
            p50,
            p99: p50,
            rate: 1.0,
        };
        Figures {
            cold_start,
            idle: idle * MIB,
            loaded: 0.0,
            processor: 0.0,
            alone: load,
            together: load,
        }
    }

    fn measured(own: Figures) -> [Figures; COUNT] {
        let of = |p50| figures(p50, 0.0, 0.0);
        [own, of(1.0), of(7.0), of(12.0), of(0.5)]
    }

    fn bars(own: Figures, image: f64) -> [Bar; 6] {
        let program = |image| Program {
            name: "a",
            title: "a",
            answer: Answer::Decision,
            command: "a".into(),
            arguments: Vec::new(),
            image,
        };
        of(
            &[
                program(image * MIB),
                program(0.0),
                program(0.0),
                program(0.0),
                program(0.0),
            ],
            &measured(own),
        )
    }

    #[test]
    fn every_promise_can_be_broken_on_its_own() {
        let missed = |own, image| -> Vec<String> {
            bars(own, image).iter().filter_map(Bar::missed).collect()
        };
        assert_eq!(missed(figures(1.1, 15.0, 100.0), 15.0), [""; 0]);
        assert_eq!(
            missed(figures(1.16, 15.0, 100.0), 15.0),
            ["missed: p50 is 1.16x empty, more than 1.15"]
        );
        assert_eq!(missed(figures(2.0, 1.0, 1.0), 1.0).len(), 3);
        assert_eq!(
            missed(figures(1.0, 16.0, 101.0), 15.5),
            [
                "missed: image is 15.50 MiB, more than 15",
                "missed: idle memory is 16.00 MiB, more than 15",
                "missed: cold start is 101.00 ms, more than 100",
            ]
        );
    }

    #[test]
    fn the_last_line_gives_the_ratios() {
        let own = figures(1.0, 0.0, 0.0);
        assert_eq!(
            summary(&bars(own, 0.0), &measured(own)),
            "p50: 1.00x empty, 7.0x faster than Go, 12.0x faster than Python, 2.0x the transport \
             alone"
        );
    }
}
