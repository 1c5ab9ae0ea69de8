//! EC2's idempotency token of a launch.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::Launch;

/// The `ClientToken` of a launch: the same launch has the same token for ever,
/// another launch another one.
///
/// EC2 answers a repeated token with the first call's result for at least 24
/// hours after the instance's termination, and takes at most 64 ASCII
/// characters. The market, type and zone belong to it because EC2 refuses a
/// token that comes back with other parameters.
pub fn client_token(pool_uid: &str, launch: &Launch) -> String {
    let mut hash = Sha256::new();
    for part in [
        pool_uid,
        &launch.slot.to_string(),
        &launch.launch.to_string(),
        &launch.offering.instance_type,
        &launch.offering.zone,
        launch.offering.market.as_str(),
    ] {
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
    use crate::{Market, Offering};
    use jiff::Timestamp;

    fn launch() -> Launch {
        Launch {
            launch: 7,
            slot: 1,
            offering: Offering {
                instance_type: "g4dn.xlarge".into(),
                zone: "us-east-1a".into(),
                market: Market::Spot,
            },
            decided_at: Timestamp::UNIX_EPOCH,
            instance_id: None,
        }
    }

    #[test]
    fn a_repeated_launch_has_the_same_token_whenever_it_is_repeated() {
        let mut later = launch();
        later.decided_at = Timestamp::MAX;
        later.instance_id = Some("i-1".into());
        assert_eq!(client_token("uid", &launch()), client_token("uid", &later));
    }

    #[test]
    fn no_two_launches_share_a_token() {
        let first = launch();
        let mut others = vec![launch(); 5];
        others[0].launch = 8;
        others[1].slot = 2;
        others[2].offering.market = Market::OnDemand;
        others[3].offering.zone = "us-east-1b".into();
        others[4].offering.instance_type = "g5.xlarge".into();
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
