//! Numbers of the API, which are signed, and the planner's, which are not.

/// A number for the API, which has signed ones only.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the API.
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A number for the API.
pub fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
