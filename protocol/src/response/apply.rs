//! Apply: whether the changes were made, and at which revision.

use crate::invalid::At;
use crate::{Header, Invalid, Status, wire::gazette};

/// `protocol.ApplyResponse`. The header's revision is that of the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyResponse {
    pub status: Status,
    pub header: Header,
}

impl TryFrom<gazette::ApplyResponse> for ApplyResponse {
    type Error = Invalid;

    fn try_from(response: gazette::ApplyResponse) -> Result<Self, Invalid> {
        let status = Status::try_from(response.status).at("Status")?;
        Ok(ApplyResponse { status, header: Header::required(response.header)? })
    }
}

impl From<ApplyResponse> for gazette::ApplyResponse {
    fn from(response: ApplyResponse) -> Self {
        let (status, header) = (response.status.number(), Some(response.header.into()));
        gazette::ApplyResponse { status, header }
    }
}
