//! Append: what became of it.

use crate::invalid::At;
use crate::{Fragment, Header, Invalid, LabelSet, Status, wire::gazette};

/// `protocol.AppendResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendResponse {
    pub status: Status,
    pub header: Header,
    /// The span of this append's content and its own sum, there when the status is `Ok`. Unlike
    /// other empty fragments, that of an append of no bytes has the sum of the empty string.
    pub commit: Option<Fragment>,
    /// The registers after the append, or those that did not match.
    pub registers: Option<LabelSet>,
    /// Messages of content that were read, the empty one included.
    pub total_chunks: i64,
    /// Those that had to wait for the journal's rate limit.
    pub delayed_chunks: i64,
    /// Why the store is unhealthy, where the status says that it is.
    pub store_health_error: String,
}

impl AppendResponse {
    /// The answer of an append that did not happen.
    pub fn refusal(status: Status, header: Header) -> Self {
        AppendResponse {
            status,
            header,
            commit: None,
            registers: None,
            total_chunks: 0,
            delayed_chunks: 0,
            store_health_error: String::new(),
        }
    }

    /// Whether a Gazette client would accept it.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.header.validate().at("Header")?;
        let needs_registers = matches!(self.status, Status::Ok | Status::RegisterMismatch);
        for (name, is_needed, is_there) in [
            ("Commit", self.status == Status::Ok, self.commit.is_some()),
            ("Registers", needs_registers, self.registers.is_some()),
        ] {
            if is_needed && !is_there {
                return Err(Invalid::new(format!("expected {name} with {}", self.status)));
            }
        }
        Ok(())
    }
}

impl TryFrom<gazette::AppendResponse> for AppendResponse {
    type Error = Invalid;

    fn try_from(response: gazette::AppendResponse) -> Result<Self, Invalid> {
        let registers = response.registers.map(LabelSet::try_from).transpose();
        let response = AppendResponse {
            status: Status::try_from(response.status).at("Status")?,
            header: Header::required(response.header)?,
            commit: Fragment::optional(response.commit).at("Commit")?,
            registers: registers.at("Registers")?,
            total_chunks: response.total_chunks,
            delayed_chunks: response.delayed_chunks,
            store_health_error: response.store_health_error,
        };
        response.validate()?;
        Ok(response)
    }
}

impl From<AppendResponse> for gazette::AppendResponse {
    fn from(response: AppendResponse) -> Self {
        gazette::AppendResponse {
            status: response.status.number(),
            header: Some(response.header.into()),
            commit: response.commit.map(Into::into),
            registers: response.registers.map(Into::into),
            total_chunks: response.total_chunks,
            delayed_chunks: response.delayed_chunks,
            store_health_error: response.store_health_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, Etcd, Route, Span, Sum};

    #[test]
    fn success_names_commit_and_registers() {
        let etcd = Etcd { cluster_id: 1, member_id: 1, revision: 1, raft_term: 1 };
        let header = Header { process_id: None, route: Route::default(), etcd };
        let journal = "foo/bar".parse().expect("valid");
        let commit = Some(Fragment::local(journal, Span::default(), Sum::ZERO, Codec::None));
        let registers = Some(LabelSet::default());
        let cases = [
            (Status::Ok, commit.clone(), registers.clone(), None),
            (Status::Ok, None, registers.clone(), Some("expected Commit with OK")),
            (Status::Ok, commit, None, Some("expected Registers with OK")),
            (Status::RegisterMismatch, None, registers, None),
            (
                Status::RegisterMismatch,
                None,
                None,
                Some("expected Registers with REGISTER_MISMATCH"),
            ),
            (Status::NotAllowed, None, None, None),
        ];
        for (status, commit, registers, expected) in cases {
            let refusal = AppendResponse::refusal(status, header.clone());
            let response = AppendResponse { commit, registers, ..refusal };
            let found = AppendResponse::try_from(gazette::AppendResponse::from(response.clone()));
            match expected {
                None => assert_eq!(found, Ok(response)),
                Some(text) => assert_eq!(found.unwrap_err().to_string(), text),
            }
        }
    }
}
