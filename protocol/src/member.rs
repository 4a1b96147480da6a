//! What a broker announces of itself in the key space.

use crate::invalid::{At, bounded};
use crate::url::check_endpoint;
use crate::{Invalid, ProcessId, wire::gazette};

/// The most journals a broker may offer to serve (gazette-spec 1.4).
pub const JOURNAL_LIMIT_MAX: u32 = 1 << 17;

/// `protocol.BrokerSpec`: a member of the cluster, its endpoint, and what it will take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSpec {
    pub id: ProcessId,
    pub endpoint: String,
    /// How many journals the allocator may give it.
    pub journal_limit: u32,
    /// Whether it wants to leave, and takes no more.
    pub is_exiting: bool,
}

impl BrokerSpec {
    pub fn validate(&self) -> Result<(), Invalid> {
        self.id.validate().at("Id").at("ProcessSpec")?;
        check_endpoint(&self.endpoint).at("Endpoint").at("ProcessSpec")?;
        bounded("JournalLimit", self.journal_limit, 0, JOURNAL_LIMIT_MAX).map(drop)
    }
}

impl TryFrom<gazette::BrokerSpec> for BrokerSpec {
    type Error = Invalid;

    fn try_from(spec: gazette::BrokerSpec) -> Result<Self, Invalid> {
        let process = spec.process_spec.unwrap_or_default();
        let id = process.id.unwrap_or_default();
        let spec = BrokerSpec {
            id: ProcessId { zone: id.zone, suffix: id.suffix },
            endpoint: process.endpoint,
            journal_limit: spec.journal_limit,
            is_exiting: spec.exiting,
        };
        spec.validate()?;
        Ok(spec)
    }
}

impl From<BrokerSpec> for gazette::BrokerSpec {
    fn from(spec: BrokerSpec) -> Self {
        let process = gazette::ProcessSpec { id: Some(spec.id.into()), endpoint: spec.endpoint };
        gazette::BrokerSpec {
            process_spec: Some(process),
            journal_limit: spec.journal_limit,
            exiting: spec.is_exiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_checked_whole() {
        let spec = BrokerSpec {
            id: ProcessId { zone: "a".into(), suffix: "broker-a".into() },
            endpoint: "http://127.0.0.1:8080".into(),
            journal_limit: JOURNAL_LIMIT_MAX,
            is_exiting: true,
        };
        assert_eq!(BrokerSpec::try_from(gazette::BrokerSpec::from(spec.clone())), Ok(spec.clone()));

        let over = BrokerSpec { journal_limit: JOURNAL_LIMIT_MAX + 1, ..spec.clone() };
        assert_eq!(
            over.validate().unwrap_err().to_string(),
            "invalid JournalLimit (131073; expected 0 <= JournalLimit <= 131072)"
        );
        let nowhere = BrokerSpec { endpoint: "http://".into(), ..spec };
        assert_eq!(
            nowhere.validate().unwrap_err().to_string(),
            "ProcessSpec.Endpoint: missing host: http://"
        );
        assert_eq!(
            BrokerSpec::try_from(gazette::BrokerSpec::default()).unwrap_err().to_string(),
            "ProcessSpec.Id.Zone: invalid length (0; expected 1 <= length <= 32)"
        );
    }
}
