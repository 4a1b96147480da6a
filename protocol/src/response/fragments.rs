//! ListFragments: a page of a journal's index.

use crate::invalid::{At, at_least};
use crate::{Fragment, Header, Invalid, Offset, Status, wire::gazette};

/// `protocol.FragmentsResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentsResponse {
    pub status: Status,
    pub header: Header,
    /// Ascending.
    pub fragments: Vec<ListedFragment>,
    /// Where the next page begins; `None` after the last.
    pub next_page_token: Option<Offset>,
}

/// A fragment, and where it can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFragment {
    pub fragment: Fragment,
    /// Empty where none was asked for, and for local fragments.
    pub signed_url: String,
}

impl FragmentsResponse {
    /// The answer of a request that is not served.
    pub fn refusal(status: Status, header: Header) -> Self {
        FragmentsResponse { status, header, fragments: Vec::new(), next_page_token: None }
    }
}

impl TryFrom<gazette::FragmentsResponse> for FragmentsResponse {
    type Error = Invalid;

    fn try_from(response: gazette::FragmentsResponse) -> Result<Self, Invalid> {
        let status = Status::try_from(response.status).at("Status")?;
        let header = Header::required(response.header)?;
        let listed = |(at, listed): (usize, gazette::fragments_response::Fragment)| {
            let spec = listed.spec.unwrap_or_default();
            let fragment = Fragment::try_from(spec).at(format_args!("Fragments[{at}].Spec"))?;
            Ok(ListedFragment { fragment, signed_url: listed.signed_url })
        };
        let fragments = response.fragments.into_iter().enumerate().map(listed);
        let fragments = fragments.collect::<Result<_, Invalid>>()?;
        let token = Offset::new(at_least("NextPageToken", response.next_page_token, 0)?)?;
        let next_page_token = (token != Offset::ZERO).then_some(token);
        Ok(FragmentsResponse { status, header, fragments, next_page_token })
    }
}

impl From<FragmentsResponse> for gazette::FragmentsResponse {
    fn from(response: FragmentsResponse) -> Self {
        let listed = |listed: ListedFragment| gazette::fragments_response::Fragment {
            spec: Some(listed.fragment.into()),
            signed_url: listed.signed_url,
        };
        gazette::FragmentsResponse {
            status: response.status.number(),
            header: Some(response.header.into()),
            fragments: response.fragments.into_iter().map(listed).collect(),
            next_page_token: response.next_page_token.map_or(0, Offset::get),
        }
    }
}
