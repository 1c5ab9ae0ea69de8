//! An offering of EC2: an instance type in a zone on a market.

use std::fmt;

/// The market on which an instance is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Market {
    /// Spot: cheap, and AWS may reclaim the instance.
    Spot,
    /// On demand.
    OnDemand,
}

impl Market {
    /// The market's name in messages and tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }
}

/// The order in which a pool asks for its types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypePreference {
    /// The types in the order of the spec. AWS chooses among the zones of a type.
    #[default]
    Ordered,
    /// AWS chooses among all types and zones, by price and capacity.
    Any,
}

/// One instance type in one zone on one market.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offering {
    /// For example `g4dn.xlarge`.
    pub instance_type: String,
    /// Availability zone, for example `us-east-1a`.
    pub zone: String,
    /// The market.
    pub market: Market,
}

impl fmt::Display for Offering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} in {}",
            self.instance_type,
            self.market.as_str(),
            self.zone
        )
    }
}

impl Offering {
    /// The limit that this offering counts against.
    pub fn quota(&self) -> (Market, QuotaFamily) {
        (self.market, QuotaFamily::of(&self.instance_type))
    }

    /// A rough estimate of the price, to order instances by it. It is in no currency: AWS's price
    /// grows with the size of the type, an instance of family P costs about three times as much as
    /// another one of its size, and on demand about three times as much as spot.
    pub fn dearness(&self) -> u32 {
        let size = self.instance_type.split('.').nth(1).unwrap_or_default();
        let multiple = size.strip_suffix("xlarge").map(str::parse::<u32>);
        let size = match (size, multiple) {
            (_, Some(Ok(number))) => number.saturating_mul(2),
            ("xlarge", _) => 2,
            ("metal", _) => 96,
            _ => 1,
        };
        let family = match QuotaFamily::of(&self.instance_type) {
            QuotaFamily::P | QuotaFamily::P5 => 3,
            _ => 1,
        };
        let market = match self.market {
            Market::Spot => 1,
            Market::OnDemand => 3,
        };
        size.saturating_mul(family * market)
    }

    /// What a person has to do who reached the limit for vCPUs.
    pub fn vcpus_to_raise(&self) -> String {
        let (market, family) = self.quota();
        match family.limit(market) {
            Some((name, code)) => format!("raise the quota {code} ({name}) in this region"),
            None => format!(
                "raise the quota for the family of {} in this region",
                self.instance_type
            ),
        }
    }
}

/// Families of instance types that share one vCPU limit of EC2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaFamily {
    /// Families G and VT.
    G,
    /// Families P2 to P4, and later ones except P5.
    P,
    /// Family P5, which has a limit of its own on the spot market.
    P5,
    /// Families A, C, D, H, I, M, R, T and Z.
    Standard,
    /// Family F.
    F,
    /// Family Inf.
    Inf,
    /// Family Trn.
    Trn,
    /// Family X.
    X,
    /// Family DL.
    Dl,
    /// Any other family, with limits of its own.
    Other,
}

impl QuotaFamily {
    /// The quota family of an instance type.
    pub fn of(instance_type: &str) -> Self {
        let name = instance_type.split('.').next().unwrap_or_default();
        let generation = name.find(|c: char| c.is_ascii_digit());
        match name.split_at(generation.unwrap_or(name.len())) {
            ("p", generation) if generation.starts_with('5') => Self::P5,
            ("p", _) => Self::P,
            ("g" | "gr" | "vt", _) => Self::G,
            ("a" | "c" | "d" | "h" | "i" | "im" | "is" | "m" | "r" | "t" | "z", _) => {
                Self::Standard
            }
            ("f", _) => Self::F,
            ("inf", _) => Self::Inf,
            ("trn", _) => Self::Trn,
            ("x", _) => Self::X,
            ("dl", _) => Self::Dl,
            _ => Self::Other,
        }
    }

    /// The limit's name and code in Service Quotas, as AWS's console shows them. `None` for a family
    /// whose limits are of many kinds.
    pub fn limit(self, market: Market) -> Option<(&'static str, &'static str)> {
        Some(match (self, market) {
            (Self::G, Market::Spot) => ("All G and VT Spot Instance Requests", "L-3819A6DF"),
            (Self::G, Market::OnDemand) => ("Running On-Demand G and VT instances", "L-DB2E81BA"),
            (Self::P5, Market::Spot) => ("All P5 Spot Instance Requests", "L-C4BD4855"),
            (Self::P, Market::Spot) => ("All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"),
            (Self::P | Self::P5, Market::OnDemand) => {
                ("Running On-Demand P instances", "L-417A185B")
            }
            (Self::Standard, Market::Spot) => (
                "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
                "L-34B43A08",
            ),
            (Self::Standard, Market::OnDemand) => (
                "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
                "L-1216C47A",
            ),
            (Self::F, Market::Spot) => ("All F Spot Instance Requests", "L-88CF9481"),
            (Self::F, Market::OnDemand) => ("Running On-Demand F instances", "L-74FC7D96"),
            (Self::Inf, Market::Spot) => ("All Inf Spot Instance Requests", "L-B5D1601B"),
            (Self::Inf, Market::OnDemand) => ("Running On-Demand Inf instances", "L-1945791B"),
            (Self::Trn, Market::Spot) => ("All Trn Spot Instance Requests", "L-6B0D517C"),
            (Self::Trn, Market::OnDemand) => ("Running On-Demand Trn instances", "L-2C3B7624"),
            (Self::X, Market::Spot) => ("All X Spot Instance Requests", "L-E3A00192"),
            (Self::X, Market::OnDemand) => ("Running On-Demand X instances", "L-7295265B"),
            (Self::Dl, Market::Spot) => ("All DL Spot Instance Requests", "L-85EED4F7"),
            (Self::Dl, Market::OnDemand) => ("Running On-Demand DL instances", "L-6E869C2A"),
            (Self::Other, _) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_machine_on_demand_is_dearer_than_a_small_one_on_spot() {
        let order = [
            ("p5.48xlarge", Market::OnDemand),
            ("p5.48xlarge", Market::Spot),
            ("g5.48xlarge", Market::Spot),
            ("g5.2xlarge", Market::OnDemand),
            ("g5.2xlarge", Market::Spot),
            ("g5.xlarge", Market::Spot),
            ("m7i.large", Market::Spot),
        ];
        let dearness = order.map(|(name, market)| {
            let offering = Offering {
                instance_type: name.into(),
                zone: "us-east-1a".into(),
                market,
            };
            offering.dearness()
        });
        assert!(dearness.is_sorted_by(|a, b| a > b), "{dearness:?}");
    }

    #[test]
    fn a_quota_error_names_the_limit_of_its_own_family_and_market() {
        for (instance_type, market, code) in [
            ("g4dn.xlarge", Market::Spot, "L-3819A6DF"),
            ("g6e.12xlarge", Market::OnDemand, "L-DB2E81BA"),
            ("p4d.24xlarge", Market::Spot, "L-7212CCBC"),
            ("p5.48xlarge", Market::Spot, "L-C4BD4855"),
            ("p5.48xlarge", Market::OnDemand, "L-417A185B"),
            ("m7i.large", Market::OnDemand, "L-1216C47A"),
            ("im4gn.large", Market::OnDemand, "L-1216C47A"),
            ("trn1.2xlarge", Market::OnDemand, "L-2C3B7624"),
            ("inf2.xlarge", Market::Spot, "L-B5D1601B"),
            ("gr6.4xlarge", Market::Spot, "L-3819A6DF"),
        ] {
            let limit = QuotaFamily::of(instance_type).limit(market);
            assert_eq!(limit.map(|(_, code)| code), Some(code), "{instance_type}");
        }
        assert_eq!(
            QuotaFamily::of("hpc7a.48xlarge").limit(Market::OnDemand),
            None
        );
    }
}
