//! Tables that people can read.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table as Grid, Width};

use crate::text::{Line, Style, printable};

/// A table with a head. An absent value is `-`.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            head: head.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        let cells = cells.into_iter().map(|cell| match cell {
            Some(text) if !text.is_empty() => printable(&text),
            _ => "-".to_owned(),
        });
        self.rows.push(cells.collect());
    }

    /// The lines of the table. In a terminal of some columns the last column wraps; elsewhere each
    /// row is one line.
    pub fn lines(&self, width: Option<u16>) -> Vec<Line> {
        let mut grid = Grid::new();
        grid.load_style(NOTHING).set_header(self.head.clone());
        if let Some(width) = width {
            grid.set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        } else {
            grid.set_content_arrangement(ContentArrangement::Disabled);
        }
        for row in &self.rows {
            grid.add_row(row);
        }
        let last = self.head.len().saturating_sub(1);
        for (number, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((0, 3));
            let longest = self.longest(number);
            if number < last && longest <= KEPT {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(longest + 3)));
            }
        }
        let text = grid.to_string();
        let has_head = self.head.iter().any(|name| !name.is_empty());
        let lines = text.lines().map(str::trim_end).enumerate();
        let lines = lines.skip(usize::from(!has_head));
        lines
            .map(|(number, line)| {
                let style = if number == 0 {
                    Style::Bold
                } else {
                    Style::Plain
                };
                Line::new().with(style, line)
            })
            .collect()
    }

    fn longest(&self, column: usize) -> u16 {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let cells = cells.map(|cell| cell.chars().count());
        let head = self.head.get(column).map_or(0, |head| head.len());
        u16::try_from(cells.max().unwrap_or(0).max(head)).unwrap_or(u16::MAX)
    }
}

/// The widest column that never wraps, for names, phases and amounts.
const KEPT: u16 = 24;

/// A duration since or until a time, in one unit or two: `45s`, `12m`, `3h20m`, `5d`.
pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..120 => format!("{s}s"),
        s @ 120..7_200 => format!("{}m", s / 60),
        s @ 7_200..172_800 => match (s / 3_600, s % 3_600 / 60) {
            (hours, 0) => format!("{hours}h"),
            (hours, minutes) => format!("{hours}h{minutes}m"),
        },
        s => format!("{}d", s / 86_400),
    }
}

/// US dollars.
pub fn usd(amount: f64) -> String {
    let digits = if amount != 0.0 && amount.abs() < 1.0 {
        3
    } else {
        2
    };
    format!("{amount:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "PHASE", "MESSAGE"]);
        let message = "waiting for spot capacity of g4dn.xlarge in us-east-1a and us-east-1b";
        table.row([
            Some("my-dev".into()),
            Some("Provisioning".into()),
            Some(message.into()),
        ]);
        table.row([Some("b".into()), None, Some("x\u{1b}[2J\ny".into())]);
        table
    }

    fn text(lines: &[Line]) -> String {
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn a_row_is_one_line_where_programs_read_it() {
        let expected = "\
NAME     PHASE          MESSAGE
my-dev   Provisioning   waiting for spot capacity of g4dn.xlarge in us-east-1a and us-east-1b
b        -              x\\u{1b}[2J y
";
        assert_eq!(text(&table().lines(None)), expected);
    }

    #[test]
    fn names_stay_whole_in_a_narrow_terminal() {
        let narrow = text(&table().lines(Some(50)));
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 50),
            "{narrow}"
        );
        assert!(
            narrow.contains("my-dev   Provisioning   waiting for"),
            "{narrow}"
        );
    }

    #[test]
    fn twenty_columns_are_enough_to_print_something() {
        assert!(text(&table().lines(Some(20))).contains("my-dev"));
    }

    #[test]
    fn times_and_amounts_are_short() {
        let spans = [
            (45, "45s"),
            (125, "2m"),
            (12_000, "3h20m"),
            (7_200, "2h"),
            (432_000, "5d"),
        ];
        for (seconds, expected) in spans {
            assert_eq!(span(seconds), expected);
        }
        assert_eq!(
            (usd(0.0), usd(0.526), usd(12.345)),
            ("0.00".into(), "0.526".into(), "12.35".into())
        );
    }
}
