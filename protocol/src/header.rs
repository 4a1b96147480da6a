//! Who answers, and at which revision of the key space.

use crate::invalid::At;
use crate::{Invalid, ProcessId, Route, wire::gazette};

/// `protocol.Header`. Every response carries one that Go clients verify (gazette-spec 1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// `None`: any member of the route.
    pub process_id: Option<ProcessId>,
    pub route: Route,
    pub etcd: Etcd,
}

/// The state of the key space an answer was given at. All but `revision` are non-zero constants of
/// the data set where there is no etcd (gazette-spec 5.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Etcd {
    pub cluster_id: u64,
    pub member_id: u64,
    /// Positive; never goes back.
    pub revision: i64,
    pub raft_term: u64,
}

impl Header {
    /// Whether a Gazette client would accept it. A broker asserts that of what it sends.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.process_id.as_ref().map_or(Ok(()), ProcessId::validate).at("ProcessId")?;
        self.route.validate().at("Route")?;
        self.etcd.validate().at("Etcd")
    }

    /// A header that is there by rule; absence is the zero value, which no rule lets pass.
    pub(crate) fn required(header: Option<gazette::Header>) -> Result<Self, Invalid> {
        Header::try_from(header.unwrap_or_default()).at("Header")
    }

    /// A header that may be absent.
    pub(crate) fn optional(header: Option<gazette::Header>) -> Result<Option<Self>, Invalid> {
        header.map(Header::try_from).transpose().at("Header")
    }
}

impl Etcd {
    pub fn validate(&self) -> Result<(), Invalid> {
        let numbers = [
            ("ClusterId", self.cluster_id),
            ("MemberId", self.member_id),
            ("RaftTerm", self.raft_term),
        ];
        if let Some((name, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return Err(Invalid::new(format!("invalid {name} (expected != 0)")));
        }
        if self.revision <= 0 {
            let revision = self.revision;
            return Err(Invalid::new(format!("invalid Revision ({revision}; expected > 0)")));
        }
        Ok(())
    }
}

impl TryFrom<gazette::Header> for Header {
    type Error = Invalid;

    fn try_from(header: gazette::Header) -> Result<Self, Invalid> {
        Ok(Header {
            process_id: ProcessId::from_wire(header.process_id).at("ProcessId")?,
            route: header.route.unwrap_or_default().try_into().at("Route")?,
            etcd: header.etcd.unwrap_or_default().try_into().at("Etcd")?,
        })
    }
}

impl From<Header> for gazette::Header {
    fn from(header: Header) -> Self {
        gazette::Header {
            process_id: Some(header.process_id.map(Into::into).unwrap_or_default()),
            route: Some(header.route.into()),
            etcd: Some(header.etcd.into()),
        }
    }
}

impl TryFrom<gazette::header::Etcd> for Etcd {
    type Error = Invalid;

    fn try_from(etcd: gazette::header::Etcd) -> Result<Self, Invalid> {
        let gazette::header::Etcd { cluster_id, member_id, revision, raft_term } = etcd;
        let etcd = Etcd { cluster_id, member_id, revision, raft_term };
        etcd.validate()?;
        Ok(etcd)
    }
}

impl From<Etcd> for gazette::header::Etcd {
    fn from(etcd: Etcd) -> Self {
        let Etcd { cluster_id, member_id, revision, raft_term } = etcd;
        gazette::header::Etcd { cluster_id, member_id, revision, raft_term }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETCD: Etcd = Etcd { cluster_id: 1, member_id: 2, revision: 3, raft_term: 4 };

    #[test]
    fn numbers_of_the_key_space_are_never_zero() {
        let cases = [
            (ETCD, None),
            (Etcd { cluster_id: 0, ..ETCD }, Some("Etcd: invalid ClusterId (expected != 0)")),
            (Etcd { member_id: 0, ..ETCD }, Some("Etcd: invalid MemberId (expected != 0)")),
            (Etcd { raft_term: 0, ..ETCD }, Some("Etcd: invalid RaftTerm (expected != 0)")),
            (Etcd { revision: 0, ..ETCD }, Some("Etcd: invalid Revision (0; expected > 0)")),
            (Etcd { revision: -1, ..ETCD }, Some("Etcd: invalid Revision (-1; expected > 0)")),
        ];
        for (etcd, expected) in cases {
            let header = Header { process_id: None, route: Route::default(), etcd };
            let found = header.validate().err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected);
            assert_eq!(Header::try_from(gazette::Header::from(header)).is_err(), found.is_some());
        }
    }

    #[test]
    fn an_empty_id_is_none_and_a_broken_one_is_refused() {
        let header = Header { process_id: None, route: Route::default(), etcd: ETCD };
        let mut message = gazette::Header::from(header.clone());
        assert_eq!(message.process_id, Some(Default::default()));
        assert_eq!(Header::try_from(message.clone()), Ok(header));

        message.process_id =
            Some(gazette::process_spec::Id { zone: "z".into(), ..Default::default() });
        assert_eq!(
            Header::try_from(message).unwrap_err().to_string(),
            "ProcessId.Suffix: invalid length (0; expected 4 <= length <= 128)"
        );
    }

    #[test]
    fn absence_is_the_zero_value_which_does_not_hold() {
        // Case: Go's zero route says primary 0 of no members.
        assert_eq!(
            Header::required(None).unwrap_err().to_string(),
            "Header.Route: invalid Primary (0; expected -1 <= Primary < 0)"
        );
        assert_eq!(Header::optional(None), Ok(None));
    }
}
