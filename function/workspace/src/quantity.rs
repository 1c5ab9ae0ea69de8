//! Reads amounts of CPU, memory and storage.

/// Thousandths of a CPU: `4` is 4000, and `1500m` is 1500.
pub fn cpu(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse().ok(),
        None => text.parse::<u64>().ok()?.checked_mul(1000),
    }
}

/// Mebibytes: `2Gi` is 2048.
pub fn memory(text: &str) -> Option<u64> {
    match text.strip_suffix("Gi") {
        Some(gibibytes) => gibibytes.parse::<u64>().ok()?.checked_mul(1024),
        None => text.strip_suffix("Mi")?.parse().ok(),
    }
}

/// Gibibytes of storage, rounded down. It reads all ways in which Kubernetes writes whole binary
/// amounts.
pub fn storage(text: &str) -> Option<u64> {
    let units = [
        ("Ti", 1 << 40),
        ("Gi", 1 << 30),
        ("Mi", 1 << 20),
        ("Ki", 1 << 10),
    ];
    let (number, unit) = units
        .into_iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((text, 1_u64));
    Some(number.parse::<u64>().ok()?.checked_mul(unit)? >> 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_amount_in_other_units_is_the_same() {
        assert_eq!(cpu("2"), cpu("2000m"));
        assert_eq!(memory("1Gi"), memory("1024Mi"));
        assert_eq!(storage("10Gi"), storage("10240Mi"));
        assert_eq!(storage("10737418240"), Some(10));
        assert_eq!(storage("5Gibi"), None);
        assert_eq!(memory("1G"), None);
    }
}
