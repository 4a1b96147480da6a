//! List: pages of journals, and the mark that ends a snapshot of a watch.

use crate::invalid::At;
use crate::{Header, Invalid, JournalSpec, Route, Status, wire::gazette};

/// `protocol.ListResponse`: one page.
///
/// Status and header are in a snapshot's first page only (gazette-spec 1.8). The empty response,
/// which is the default, ends a snapshot of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListResponse {
    pub status: Status,
    /// `None` in all pages but the first.
    pub header: Option<Header>,
    pub journals: Vec<ListedJournal>,
}

/// `protocol.ListResponse.Journal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedJournal {
    pub spec: JournalSpec,
    /// The revision of the spec's last change; positive.
    pub mod_revision: i64,
    pub create_revision: i64,
    pub route: Route,
}

impl Default for ListResponse {
    fn default() -> Self {
        ListResponse { status: Status::Ok, header: None, journals: Vec::new() }
    }
}

impl ListResponse {
    /// Whether it ends a snapshot of a watch.
    pub fn is_end_of_snapshot(&self) -> bool {
        self.status == Status::Ok && self.header.is_none() && self.journals.is_empty()
    }
}

impl TryFrom<gazette::list_response::Journal> for ListedJournal {
    type Error = Invalid;

    fn try_from(journal: gazette::list_response::Journal) -> Result<Self, Invalid> {
        let spec = journal.spec.unwrap_or_default().try_into().at("Spec")?;
        let mod_revision = journal.mod_revision;
        if mod_revision <= 0 {
            let reason = format!("invalid ModRevision ({mod_revision}; expected > 0)");
            return Err(Invalid::new(reason));
        }
        Ok(ListedJournal {
            spec,
            mod_revision,
            create_revision: journal.create_revision,
            route: journal.route.unwrap_or_default().try_into().at("Route")?,
        })
    }
}

impl From<ListedJournal> for gazette::list_response::Journal {
    fn from(journal: ListedJournal) -> Self {
        gazette::list_response::Journal {
            spec: Some(journal.spec.into()),
            mod_revision: journal.mod_revision,
            create_revision: journal.create_revision,
            route: Some(journal.route.into()),
        }
    }
}

/// Whether a header is Go's zero value, with its parts written out or left out.
fn is_unset(header: &gazette::Header) -> bool {
    header.process_id.clone().unwrap_or_default() == Default::default()
        && header.route.clone().unwrap_or_default() == Default::default()
        && header.etcd.unwrap_or_default() == Default::default()
}

impl TryFrom<gazette::ListResponse> for ListResponse {
    type Error = Invalid;

    fn try_from(response: gazette::ListResponse) -> Result<Self, Invalid> {
        let status = Status::try_from(response.status).at("Status")?;
        let header = Header::optional(response.header.filter(|header| !is_unset(header)))?;
        let journal =
            |(at, journal)| ListedJournal::try_from(journal).at(format_args!("Journals[{at}]"));
        let journals = response.journals.into_iter().enumerate().map(journal);
        Ok(ListResponse { status, header, journals: journals.collect::<Result<_, _>>()? })
    }
}

impl From<ListResponse> for gazette::ListResponse {
    fn from(response: ListResponse) -> Self {
        gazette::ListResponse {
            status: response.status.number(),
            header: response.header.map(Into::into),
            journals: response.journals.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_snapshot_is_told_however_it_is_written() {
        let zero = gazette::Header {
            process_id: Some(Default::default()),
            route: Some(Default::default()),
            etcd: Some(Default::default()),
        };
        for header in [None, Some(gazette::Header::default()), Some(zero)] {
            let message = gazette::ListResponse { header, ..Default::default() };
            let response = ListResponse::try_from(message).expect("valid");
            assert!(response.is_end_of_snapshot());
            assert_eq!(response, ListResponse::default());
        }
    }

    #[test]
    fn journals_are_named_where_they_fail() {
        let journal = gazette::list_response::Journal::default();
        let message = gazette::ListResponse { journals: vec![journal], ..Default::default() };
        assert_eq!(
            ListResponse::try_from(message).unwrap_err().to_string(),
            "Journals[0].Spec.Name: invalid length (0; expected 4 <= length <= 512)"
        );
    }
}
