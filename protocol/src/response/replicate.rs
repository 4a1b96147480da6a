//! Replicate: whether a replica agrees.

use crate::invalid::At;
use crate::{Fragment, Header, Invalid, LabelSet, Status, wire::gazette};

/// `protocol.ReplicateResponse`.
///
/// Which fields go with which status is not checked: what Gazette's brokers send breaks Gazette's
/// own rule (gazette-spec 1.4), as the first answer has a header whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicateResponse {
    pub status: Status,
    pub header: Option<Header>,
    /// What the replica has, where it does not agree.
    pub fragment: Option<Fragment>,
    pub registers: Option<LabelSet>,
}

impl TryFrom<gazette::ReplicateResponse> for ReplicateResponse {
    type Error = Invalid;

    fn try_from(response: gazette::ReplicateResponse) -> Result<Self, Invalid> {
        let registers = response.registers.map(LabelSet::try_from).transpose();
        Ok(ReplicateResponse {
            status: Status::try_from(response.status).at("Status")?,
            header: Header::optional(response.header)?,
            fragment: Fragment::optional(response.fragment).at("Fragment")?,
            registers: registers.at("Registers")?,
        })
    }
}

impl From<ReplicateResponse> for gazette::ReplicateResponse {
    fn from(response: ReplicateResponse) -> Self {
        gazette::ReplicateResponse {
            status: response.status.number(),
            header: response.header.map(Into::into),
            fragment: response.fragment.map(Into::into),
            registers: response.registers.map(Into::into),
        }
    }
}
