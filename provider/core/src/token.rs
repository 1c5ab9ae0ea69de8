//! EC2's idempotency tokens for launches and home volumes.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{HomeRecord, Launch};

/// The `ClientToken` of a launch. The same launch always has the same token, and two different
/// launches have different tokens.
///
/// EC2 answers a repeated token with the first call's result for at least 24 hours after the
/// instances' termination. A token has at most 64 ASCII characters. All parameters of the request
/// are part of it, because EC2 refuses a token that comes back with other parameters.
pub fn client_token(pool_uid: &str, launch: &Launch) -> String {
    let numbers = [launch.launch.to_string(), launch.count.to_string()];
    let offerings = launch.offerings.iter();
    let offerings = offerings.flat_map(|o| [&*o.instance_type, &*o.zone, o.market.as_str()]);
    let parts = [pool_uid, &numbers[0], &numbers[1], &launch.generation];
    digest(parts.into_iter().chain(offerings))
}

/// The `ClientToken` for creating a home volume. All parameters of the request are part of it, as
/// for a launch.
pub fn volume_token(pool_uid: &str, record: &HomeRecord) -> String {
    let numbers = [record.number.to_string(), record.size_gib.to_string()];
    let snapshot = record.snapshot_id.as_deref().unwrap_or_default();
    let [number, size] = &numbers;
    digest(["home", pool_uid, number, &record.zone, size, snapshot])
}

/// A digest of a list of texts, 64 hexadecimal digits.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize()
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Launched, Market, Offering};
    use jiff::Timestamp;

    fn launch() -> Launch {
        Launch {
            launch: 7,
            count: 2,
            generation: "0123".into(),
            offerings: vec![Offering {
                instance_type: "g4dn.xlarge".into(),
                zone: "us-east-1a".into(),
                market: Market::Spot,
            }],
            decided_at: Timestamp::UNIX_EPOCH,
            failures: 0,
            answer: None,
        }
    }

    #[test]
    fn a_repeated_launch_has_the_same_token_whenever_it_is_repeated() {
        let mut later = launch();
        later.decided_at = Timestamp::MAX;
        later.failures = 3;
        later.answer = Some(vec![Launched {
            id: "i-1".into(),
            offering: later.offerings[0].clone(),
        }]);
        assert_eq!(client_token("uid", &launch()), client_token("uid", &later));
    }

    #[test]
    fn no_two_launches_share_a_token() {
        let first = launch();
        let mut others = vec![launch(); 7];
        others[0].launch = 8;
        others[1].count = 3;
        others[2].offerings[0].market = Market::OnDemand;
        others[3].offerings[0].zone = "us-east-1b".into();
        others[4].offerings[0].instance_type = "g5.xlarge".into();
        others[5].generation = "4567".into();
        others[6].offerings.push(first.offerings[0].clone());
        for other in others {
            assert_ne!(client_token("uid", &first), client_token("uid", &other));
        }
        assert_ne!(client_token("uid", &first), client_token("other", &first));
    }

    #[test]
    fn ec2_accepts_the_token() {
        let token = client_token("uid", &launch());
        assert_eq!(token.len(), 64);
        assert!(token.is_ascii());
    }
}
