//! Minimises a failing request.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::mutation::{paths, remove};
use crate::oracle;

const AT_MOST: Duration = Duration::from_mins(1);

/// Removes every part of the request without which the same rule is still broken.
pub fn minimise(request: &Value, rule: &'static str) -> Value {
    let deadline = Instant::now() + AT_MOST;
    let is_broken = |request: &Value| {
        oracle::check(request, true).is_err_and(|violation| violation.rule == rule)
    };
    let mut small = request.clone();
    // Whole resources first, then their fields.
    for depth in [2, 3, 4, 5, 6, 8, 12] {
        let mut all = paths(&small, depth);
        all.sort_by_key(|path| (path.matches('/').count(), std::cmp::Reverse(path.clone())));
        for path in all {
            if Instant::now() > deadline {
                return small;
            }
            let mut smaller = small.clone();
            remove(&mut smaller, &path);
            if smaller != small && is_broken(&smaller) {
                small = smaller;
            }
        }
    }
    small
}
