//! What the regions of a process share with each other.

use std::sync::{Arc, Mutex};

use provider_core::UnavailableOfferings;

use crate::by_account::ByAccount;
use crate::notices::Notices;

/// The unavailable offerings of one account in one region.
pub type Offerings = Arc<Mutex<UnavailableOfferings>>;

/// What all regions share.
#[derive(Debug, Default)]
pub struct Shared {
    /// AWS's announcements, by instance id.
    pub notices: Notices,
    unavailable: ByAccount<Mutex<UnavailableOfferings>>,
}

/// The part of a region in what is shared.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// What all regions share.
    pub all: Arc<Shared>,
    /// The server and the region.
    pub place: String,
}

impl Share {
    /// The unavailable offerings of an account. Zones and quotas are those of an account, so one
    /// configuration's refusals hold for all configurations of it.
    pub fn unavailable(&self, account: &str) -> Offerings {
        self.all.unavailable.of(account, &self.place)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use provider_core::{ErrorClass, Refusal};

    use super::*;
    use crate::locking::lock;
    use crate::region::{Account, Region, Snapshot};
    use crate::simulation::{ec2_for_tests, instance_for_tests};

    /// A region that has looked into an account.
    fn region(all: &Arc<Shared>, server: &str, account: &str) -> Region {
        let share = Share {
            all: all.clone(),
            place: format!("{server} us-east-1"),
        };
        let region = Region::new(ec2_for_tests(), "us-east-1".into(), share, Timestamp::MIN);
        let snapshot = Snapshot {
            account: Account::Known(account.to_owned()),
            ..Snapshot::default()
        };
        drop(region.publish(Ok(Arc::new(snapshot)), Timestamp::now()));
        region
    }

    #[test]
    fn a_refusal_of_one_configuration_holds_for_every_one_of_its_account_and_for_no_other() {
        let all = Arc::<Shared>::default();
        let first = region(&all, "AWS", "111111111111");
        let refusal = Refusal {
            class: ErrorClass::Capacity,
            code: "InsufficientInstanceCapacity".into(),
            message: String::new(),
        };
        let (offering, now) = (instance_for_tests("i-1").offering, Timestamp::now());
        lock(&first.unavailable()).refused(&offering, &refusal, &[], now);
        for (server, account, is_unavailable) in [
            ("AWS", "111111111111", true),
            ("AWS", "222222222222", false),
            // Such a server may name any account.
            ("https://ec2.team.example", "111111111111", false),
        ] {
            let other = region(&all, server, account);
            let found = lock(&other.unavailable()).at(&offering, now).is_some();
            assert_eq!(found, is_unavailable, "{server} {account}");
        }
    }
}
