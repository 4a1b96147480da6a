//! FragmentStoreHealth: whether the store can be written, and why not.

use crate::invalid::At;
use crate::{Header, Invalid, Status, wire::gazette};

/// `protocol.FragmentStoreHealthResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentStoreHealthResponse {
    /// `Ok` or `FragmentStoreUnhealthy`.
    pub status: Status,
    pub header: Header,
    /// Why it is unhealthy, else empty.
    pub store_health_error: String,
}

impl TryFrom<gazette::FragmentStoreHealthResponse> for FragmentStoreHealthResponse {
    type Error = Invalid;

    fn try_from(response: gazette::FragmentStoreHealthResponse) -> Result<Self, Invalid> {
        Ok(FragmentStoreHealthResponse {
            status: Status::try_from(response.status).at("Status")?,
            header: Header::required(response.header)?,
            store_health_error: response.store_health_error,
        })
    }
}

impl From<FragmentStoreHealthResponse> for gazette::FragmentStoreHealthResponse {
    fn from(response: FragmentStoreHealthResponse) -> Self {
        gazette::FragmentStoreHealthResponse {
            status: response.status.number(),
            header: Some(response.header.into()),
            store_health_error: response.store_health_error,
        }
    }
}
