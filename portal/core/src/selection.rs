//! Pages of a list.

use crate::problem::Problem;
use crate::shape::Selection;
use crate::view::Row;

/// The most that one page has.
pub const LARGEST: u16 = 500;

/// A page of rows, and the cursor of the next one.
#[derive(Debug)]
pub struct Page<'a> {
    /// The rows.
    pub rows: Vec<&'a Row>,
    /// Where the next page begins; none for the last one.
    pub next: Option<String>,
}

/// The page of rows that a person wants. `rows` are in the order of namespaces and names. A cursor names the
/// last row of a page, and the next page begins after it. So the pages together have each row that exists all the time,
/// even if other rows are created or deleted between two pages.
///
/// # Errors
///
/// The limit or the cursor is wrong.
pub fn page<'a>(
    rows: impl Iterator<Item = &'a Row>,
    selection: &Selection,
) -> Result<Page<'a>, Problem> {
    let limit = match selection.limit {
        Some(limit) if limit == 0 || limit > LARGEST => {
            let detail = format!("limit: must be from 1 to {LARGEST}");
            return Err(Problem::invalid("/limit", detail));
        }
        limit => limit.map(usize::from),
    };
    let after = match selection
        .after
        .as_deref()
        .map(|after| after.split_once('/'))
    {
        None => None,
        Some(Some(after)) => Some(after),
        Some(None) => {
            let detail = "continue: must be that of another answer";
            return Err(Problem::invalid("/continue", detail));
        }
    };
    let mut selected = rows
        .filter(|row| after.is_none_or(|after| (&*row.namespace, &*row.name) > after))
        .filter(|row| is_selected(row, selection));
    let rows: Vec<&Row> = match limit {
        Some(limit) => selected.by_ref().take(limit).collect(),
        None => selected.by_ref().collect(),
    };
    let has_more = selected.next().is_some();
    let last = rows.last().filter(|_| has_more);
    let next = last.map(|row| format!("{}/{}", row.namespace, row.name));
    Ok(Page { rows, next })
}

fn is_selected(row: &Row, selection: &Selection) -> bool {
    let is = |wanted: &Option<String>, value: Option<&str>| {
        wanted.is_none() || wanted.as_deref() == value
    };
    is(&selection.namespace, Some(&row.namespace))
        && is(&selection.owner, row.owner.as_deref())
        && is(&selection.phase, Some(&row.phase))
        && selection
            .q
            .as_ref()
            .is_none_or(|text| row.name.contains(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows() -> Vec<Row> {
        let named = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z")];
        let row = |(namespace, name)| {
            Row::new(&json!({
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"parameters": {"owner": namespace}}, "status": {"phase": "Ready"},
            }))
        };
        named.map(row).into()
    }

    fn names(page: &Page<'_>) -> Vec<String> {
        let rows = page.rows.iter();
        rows.map(|row| format!("{}/{}", row.namespace, row.name))
            .collect()
    }

    #[test]
    fn pages_together_have_every_row_once() {
        let rows = rows();
        for limit in 1..=5 {
            let mut selection = Selection {
                limit: Some(limit),
                ..Selection::default()
            };
            let mut found = Vec::new();
            loop {
                let page = page(rows.iter(), &selection).unwrap();
                found.extend(names(&page));
                let Some(next) = page.next else { break };
                selection.after = Some(next);
            }
            assert_eq!(found, ["a/x", "a/y", "b/x", "b/z"], "{limit}");
        }
    }

    #[test]
    fn a_page_goes_on_after_a_row_that_is_gone() {
        let rows = rows();
        let selection = Selection {
            after: Some("a/xx".into()),
            ..Selection::default()
        };
        assert_eq!(
            names(&page(rows.iter(), &selection).unwrap()),
            ["a/y", "b/x", "b/z"]
        );
    }

    #[test]
    fn only_what_was_asked_for_is_listed() {
        let rows = rows();
        let of = |selection: &Selection| names(&page(rows.iter(), selection).unwrap());
        let all = Selection::default;
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(&Selection {
                namespace: text("a"),
                ..all()
            }),
            ["a/x", "a/y"]
        );
        assert_eq!(
            of(&Selection {
                owner: text("b"),
                ..all()
            }),
            ["b/x", "b/z"]
        );
        assert_eq!(
            of(&Selection {
                q: text("x"),
                ..all()
            }),
            ["a/x", "b/x"]
        );
        assert_eq!(
            of(&Selection {
                phase: text("Failed"),
                ..all()
            }),
            [""; 0]
        );
    }

    #[test]
    fn a_wrong_page_is_refused_with_its_field() {
        for (limit, after, field) in [
            (Some(0), None, "/limit"),
            (Some(501), None, "/limit"),
            (None, Some("nowhere"), "/continue"),
        ] {
            let selection = Selection {
                limit,
                after: after.map(str::to_owned),
                ..Selection::default()
            };
            let problem = page(rows().iter(), &selection).unwrap_err();
            assert_eq!(problem.errors[0].pointer, field);
        }
    }
}
