//! Many changes at once in one event.

use std::collections::BTreeMap;
use std::ptr;

use crate::happened::Happened;

/// The longest message that the API server accepts.
pub(super) const MESSAGE_LIMIT: usize = 1024;

/// The most events of one reason that a resource gets at one time. More of them are one event: a
/// pool of 500 instances that ends must not write 500 events.
const MOST: usize = 10;

/// The events for changes of a resource, and how many changes each one tells.
pub(super) fn combined(happened: &[Happened]) -> Vec<(Happened, i32)> {
    let kind = |one: &Happened| (one.reason, one.is_warning);
    let mut by_kind: BTreeMap<_, Vec<&Happened>> = BTreeMap::new();
    for one in happened {
        by_kind.entry(kind(one)).or_default().push(one);
    }
    let mut events = Vec::new();
    for one in happened {
        let alike = by_kind.get(&kind(one)).map_or(&[][..], Vec::as_slice);
        if alike.len() <= MOST {
            events.push((one.clone(), 1));
        } else if alike.first().is_some_and(|first| ptr::eq(*first, one)) {
            let count = i32::try_from(alike.len()).unwrap_or(i32::MAX);
            let message = message(alike);
            events.push((
                Happened {
                    message,
                    ..one.clone()
                },
                count,
            ));
        }
    }
    events
}

/// As many messages as fit.
fn message(alike: &[&Happened]) -> String {
    let mut text = format!("{} times: ", alike.len());
    for (told, one) in alike.iter().enumerate() {
        let rest = format!("and {} more", alike.len() - told);
        let length = |text: &str| text.chars().count();
        let longer = length(&text) + length(&one.message) + "; ".len() + rest.len();
        if longer > MESSAGE_LIMIT {
            return text + &rest;
        }
        if told > 0 {
            text.push_str("; ");
        }
        text.push_str(&one.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminated(number: usize) -> Vec<Happened> {
        (0..number)
            .map(|n| Happened::normal("Terminated", format!("terminated i-{n:017}")))
            .collect()
    }

    #[test]
    fn a_few_changes_are_an_event_each() {
        let all: Vec<_> = terminated(MOST).into_iter().map(|one| (one, 1)).collect();
        assert_eq!(combined(&terminated(MOST)), all);
    }

    #[test]
    fn the_end_of_a_large_pool_is_one_event_that_fits() {
        let mut happened = vec![Happened::warning("Late", "late")];
        happened.extend(terminated(500));
        happened.push(Happened::normal("Ended", "ended"));
        let events = combined(&happened);
        let counts: Vec<_> = events.iter().map(|(one, n)| (one.reason, *n)).collect();
        assert_eq!(counts, [("Late", 1), ("Terminated", 500), ("Ended", 1)]);
        let message = &events[1].0.message;
        let begins = "500 times: terminated i-00000000000000000; terminated i-00000000000000001;";
        assert!(message.starts_with(begins), "{message}");
        assert!(message.chars().count() <= MESSAGE_LIMIT, "{message}");
        let told = message.matches("terminated").count();
        let ends = format!("and {} more", 500 - told);
        assert!(message.ends_with(&ends), "{message}");
    }
}
