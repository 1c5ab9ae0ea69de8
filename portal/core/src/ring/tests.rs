use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn row(namespace: &str, name: &str, version: u64) -> Row {
    Row::new(&json!({"metadata": {
        "namespace": namespace, "name": name, "resourceVersion": version.to_string(),
    }}))
}

/// The versions that a page gets until it is idle, and whether it must list again.
fn all(ring: &Ring, cursor: &mut Cursor, visible: &Visible) -> (Vec<u64>, bool) {
    let mut versions = Vec::new();
    loop {
        match ring.step(cursor, visible) {
            Step::Frame(frame) => versions.push(id(&frame)),
            Step::Idle => return (versions, false),
            Step::TooOld => return (versions, true),
        }
    }
}

fn id(frame: &Bytes) -> u64 {
    let text = std::str::from_utf8(frame).unwrap();
    let line = text.lines().next().unwrap();
    line.strip_prefix("id: ").unwrap().parse().unwrap()
}

fn at(resumed: Resumed) -> Cursor {
    let Resumed::At(cursor) = resumed else {
        panic!("{resumed:?}");
    };
    cursor
}

#[test]
fn a_message_is_what_a_browser_reads() {
    let mut ring = Ring::new(1, 8);
    let mut cursor = at(ring.resume(1));
    let claim = json!({
        "metadata": {"namespace": "a", "name": "x", "resourceVersion": "2"},
        "status": {"message": "two\nlines\rand\u{2028}more"},
    });
    ring.put(&Row::new(&claim));
    ring.gone("a", "y", 3);
    let Step::Frame(put) = ring.step(&mut cursor, &Visible::Everywhere) else {
        panic!("no message");
    };
    let text = std::str::from_utf8(&put).unwrap();
    let lines: Vec<_> = text.split('\n').collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        (lines[0], lines[1], lines[3], lines[4]),
        ("id: 2", "event: put", "", "")
    );
    assert!(!text.contains('\r'));
    let told: Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(told["message"], "two\nlines\rand\u{2028}more");
    let Step::Frame(gone) = ring.step(&mut cursor, &Visible::Everywhere) else {
        panic!("no message");
    };
    assert_eq!(
        std::str::from_utf8(&gone).unwrap(),
        "id: 3\nevent: gone\ndata: {\"name\":\"y\",\"namespace\":\"a\"}\n\n"
    );
}

#[test]
fn a_page_goes_on_after_the_version_that_it_knows() {
    let mut ring = Ring::new(10, 8);
    for version in 11..15 {
        ring.put(&row("a", &format!("x{version}"), version));
    }
    let mut cursor = at(ring.resume(12));
    assert_eq!(
        all(&ring, &mut cursor, &Visible::Everywhere),
        (vec![13, 14], false)
    );
    ring.advance(20);
    assert_eq!(at(ring.resume(20)), cursor);
    assert_eq!(ring.resume(21), Resumed::Ahead);
    assert_eq!(ring.resume(9), Resumed::TooOld);
}

#[test]
fn a_page_gets_what_its_person_may_see_only() {
    let mut ring = Ring::new(0, 8);
    ring.put(&row("a", "x", 1));
    ring.put(&row("b", "x", 2));
    ring.gone("b", "y", 3);
    let mut cursor = at(ring.resume(0));
    assert_eq!(
        all(&ring, &mut cursor, &Visible::only("a")),
        (vec![1], false)
    );
    let mut cursor = at(ring.resume(0));
    assert_eq!(
        all(&ring, &mut cursor, &Visible::nothing()),
        (vec![], false)
    );
}

#[test]
fn a_page_that_fell_behind_is_told_to_list_again() {
    let mut ring = Ring::new(0, 4);
    let mut cursor = at(ring.resume(0));
    for version in 1..=5 {
        ring.put(&row("a", &format!("x{version}"), version));
    }
    assert_eq!(
        all(&ring, &mut cursor, &Visible::Everywhere),
        (vec![], true)
    );
    assert_eq!(ring.resume(0), Resumed::TooOld);
    let mut cursor = at(ring.resume(1));
    assert_eq!(
        all(&ring, &mut cursor, &Visible::Everywhere),
        (vec![2, 3, 4, 5], false)
    );
}

/// A page applies what it gets, and lists again when it is told to. Whatever the order of changes, of
/// pages that read and of pages that sleep, it ends with the claims as they are.
#[test]
fn no_page_misses_a_change_without_being_told() {
    let seeds = 0..2000;
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut ring = Ring::new(0, random.usize(1..12));
        let mut claims: BTreeMap<String, u64> = BTreeMap::new();
        let mut pages: Vec<_> = (0..3)
            .map(|_| (at(ring.resume(0)), BTreeMap::new()))
            .collect();
        let mut version = 0;
        for _ in 0..random.usize(1..80) {
            version += random.u64(1..4);
            let name = format!("x{}", random.u8(0..4));
            if random.u8(0..4) == 0 {
                claims.remove(&name);
                ring.gone("a", &name, version);
            } else {
                claims.insert(name.clone(), version);
                ring.put(&row("a", &name, version));
            }
            for (cursor, known) in &mut pages {
                if random.u8(0..3) == 0 {
                    read(&ring, cursor, known, &claims);
                }
            }
        }
        for (cursor, known) in &mut pages {
            read(&ring, cursor, known, &claims);
            assert_eq!(*known, claims, "seed {seed}");
        }
    }
}

fn read(
    ring: &Ring,
    cursor: &mut Cursor,
    known: &mut BTreeMap<String, u64>,
    claims: &BTreeMap<String, u64>,
) {
    loop {
        match ring.step(cursor, &Visible::Everywhere) {
            Step::Idle => return,
            Step::TooOld => {
                known.clone_from(claims);
                *cursor = at(ring.resume(ring.head()));
            }
            Step::Frame(frame) => {
                let text = std::str::from_utf8(&frame).unwrap();
                let data = text.lines().nth(2).unwrap();
                let told: Value =
                    serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                let name = told["name"].as_str().unwrap().to_owned();
                if text.contains("event: gone") {
                    known.remove(&name);
                } else {
                    known.insert(name, id(&frame));
                }
            }
        }
    }
}
