//! Conversions between the API's signed numbers and the planner's unsigned ones.

/// A number for the API, which has only signed ones. Larger numbers become the maximum.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the API for the planner. A negative one becomes 0.
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A number for the API, which has only signed ones. Larger numbers become the maximum.
pub fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
