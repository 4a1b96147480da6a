//! Who serves a journal.

use crate::alphabet::check_token;
use crate::invalid::At;
use crate::url::check_endpoint;
use crate::{Invalid, wire::gazette};

/// `ProcessSpec.ID`: a process of the cluster by zone and suffix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    pub zone: String,
    pub suffix: String,
}

impl ProcessId {
    pub fn new(zone: impl Into<String>, suffix: impl Into<String>) -> Result<Self, Invalid> {
        let id = ProcessId { zone: zone.into(), suffix: suffix.into() };
        id.validate()?;
        Ok(id)
    }

    /// A zone is a token of 1..=32 bytes, a suffix one of 4..=128.
    pub fn validate(&self) -> Result<(), Invalid> {
        check_token(&self.zone, 1, 32).at("Zone")?;
        check_token(&self.suffix, 4, 128).at("Suffix")
    }

    /// The wire's empty id is "any member", and no id here.
    pub(crate) fn from_wire(
        id: Option<gazette::process_spec::Id>,
    ) -> Result<Option<Self>, Invalid> {
        let id = id.unwrap_or_default();
        if id == gazette::process_spec::Id::default() {
            return Ok(None);
        }
        ProcessId::try_from(id).map(Some)
    }
}

impl std::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.zone, self.suffix)
    }
}

impl TryFrom<gazette::process_spec::Id> for ProcessId {
    type Error = Invalid;

    fn try_from(id: gazette::process_spec::Id) -> Result<Self, Invalid> {
        ProcessId::new(id.zone, id.suffix)
    }
}

impl From<ProcessId> for gazette::process_spec::Id {
    fn from(id: ProcessId) -> Self {
        gazette::process_spec::Id { zone: id.zone, suffix: id.suffix }
    }
}

/// The members that serve a journal, sorted, each with its endpoint.
///
/// [`validate`](Route::validate) tells whether the fields hold together; what comes from the wire
/// does. The default route has no members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// Strictly ascending.
    pub members: Vec<ProcessId>,
    /// Index of the primary among `members`; `None` is the wire's -1.
    pub primary: Option<usize>,
    /// Empty, or one URL a member; a member without one has an empty text.
    pub endpoints: Vec<String>,
}

impl Route {
    /// The route of a single broker, which is its own primary.
    pub fn alone(member: ProcessId, endpoint: String) -> Self {
        Route { members: vec![member], primary: Some(0), endpoints: vec![endpoint] }
    }

    pub fn primary_member(&self) -> Option<&ProcessId> {
        self.members.get(self.primary?)
    }

    /// Where a member listens, as far as the route says.
    pub fn endpoint_of(&self, member: &ProcessId) -> Option<&str> {
        let at = self.members.binary_search(member).ok()?;
        self.endpoints.get(at).map(String::as_str).filter(|endpoint| !endpoint.is_empty())
    }

    pub fn primary_endpoint(&self) -> Option<&str> {
        self.endpoint_of(self.primary_member()?)
    }

    /// Whether the same members serve with the same primary. Where they listen does not matter:
    /// replicas compare routes so (gazette-spec 1.12).
    pub fn is_equivalent(&self, other: &Route) -> bool {
        self.members == other.members && self.primary == other.primary
    }

    /// The route as it is kept in the key space.
    #[must_use]
    pub fn without_endpoints(mut self) -> Self {
        self.endpoints.clear();
        self
    }

    pub fn validate(&self) -> Result<(), Invalid> {
        let (members, endpoints) = (self.members.len(), self.endpoints.len());
        for (at, member) in self.members.iter().enumerate() {
            member.validate().at(format_args!("Members[{at}]"))?;
        }
        if let Some(at) = self.members.windows(2).position(|pair| pair[0] >= pair[1]) {
            let reason = format!("members must be unique and sorted ({})", self.members[at + 1]);
            return Err(Invalid::new(reason).within(format_args!("Members[{}]", at + 1)));
        }
        if self.primary.is_some_and(|primary| primary >= members) {
            let primary = self.primary.unwrap_or_default();
            return Err(primary_out_of_bounds(primary, members));
        }
        if endpoints != 0 && endpoints != members {
            return Err(Invalid::new(format!(
                "len(Endpoints) != 0, and != len(Members) ({endpoints} vs {members})"
            )));
        }
        for (at, endpoint) in self.endpoints.iter().enumerate().filter(|(_, e)| !e.is_empty()) {
            check_endpoint(endpoint).at(format_args!("Endpoints[{at}]"))?;
        }
        Ok(())
    }
}

fn primary_out_of_bounds(primary: impl std::fmt::Display, members: usize) -> Invalid {
    Invalid::new(format!("invalid Primary ({primary}; expected -1 <= Primary < {members})"))
}

impl TryFrom<gazette::Route> for Route {
    type Error = Invalid;

    fn try_from(route: gazette::Route) -> Result<Self, Invalid> {
        let members = route.members.len();
        let primary = match route.primary {
            -1 => None,
            at => Some(usize::try_from(at).map_err(|_| primary_out_of_bounds(at, members))?),
        };
        let id = |id: gazette::process_spec::Id| ProcessId { zone: id.zone, suffix: id.suffix };
        let members = route.members.into_iter().map(id).collect();
        let route = Route { members, primary, endpoints: route.endpoints };
        route.validate()?;
        Ok(route)
    }
}

impl From<Route> for gazette::Route {
    fn from(route: Route) -> Self {
        let index = |at: usize| i32::try_from(at).expect("a route has few members");
        gazette::Route {
            members: route.members.into_iter().map(Into::into).collect(),
            primary: route.primary.map_or(-1, index),
            endpoints: route.endpoints,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(zone: &str, suffix: &str) -> gazette::process_spec::Id {
        gazette::process_spec::Id { zone: zone.into(), suffix: suffix.into() }
    }

    fn route(zones: &[&str], primary: i32, endpoints: &[&str]) -> gazette::Route {
        gazette::Route {
            members: zones.iter().map(|zone| id(zone, "broker")).collect(),
            primary,
            endpoints: endpoints.iter().map(|endpoint| endpoint.to_string()).collect(),
        }
    }

    #[test]
    fn ids_are_bounded_tokens() {
        let long = "z".repeat(129);
        let cases = [
            (("z", "abcd"), None),
            (("", "abcd"), Some("Zone: invalid length (0; expected 1 <= length <= 32)")),
            ((&long[..33], "abcd"), Some("Zone: invalid length (33; expected 1 <= length <= 32)")),
            (("z", "abc"), Some("Suffix: invalid length (3; expected 4 <= length <= 128)")),
            (("z", &long[..]), Some("Suffix: invalid length (129; expected 4 <= length <= 128)")),
            // Case: host and port are no suffix.
            (("z", "host:80"), Some("Suffix: not a valid token (host:80)")),
        ];
        for ((zone, suffix), expected) in cases {
            let found = ProcessId::new(zone, suffix).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{zone} {suffix}");
        }
        assert_eq!(ProcessId::new("a", "broker").expect("valid").to_string(), "a/broker");
    }

    #[test]
    fn routes_hold_together() {
        let cases = [
            (route(&[], -1, &[]), None),
            (route(&["a", "b"], 1, &["http://a", ""]), None),
            (route(&["a", "b"], -1, &[]), None),
            // Case: a route without members must say so.
            (route(&[], 0, &[]), Some("invalid Primary (0; expected -1 <= Primary < 0)")),
            (route(&["a"], 1, &[]), Some("invalid Primary (1; expected -1 <= Primary < 1)")),
            (route(&["a"], -2, &[]), Some("invalid Primary (-2; expected -1 <= Primary < 1)")),
            (
                route(&["b", "a"], 0, &[]),
                Some("Members[1]: members must be unique and sorted (a/broker)"),
            ),
            (
                route(&["a", "a"], 0, &[]),
                Some("Members[1]: members must be unique and sorted (a/broker)"),
            ),
            (
                route(&["a", ""], 0, &[]),
                Some("Members[1].Zone: invalid length (0; expected 1 <= length <= 32)"),
            ),
            (
                route(&["a", "b"], 0, &["http://a"]),
                Some("len(Endpoints) != 0, and != len(Members) (1 vs 2)"),
            ),
            (route(&["a"], 0, &["nowhere"]), Some("Endpoints[0]: not absolute: nowhere")),
        ];
        for (message, expected) in cases {
            let found = Route::try_from(message.clone());
            match expected {
                None => assert_eq!(gazette::Route::from(found.expect("valid")), message),
                Some(text) => assert_eq!(found.unwrap_err().to_string(), text),
            }
        }
    }

    #[test]
    fn members_are_looked_up() {
        let route = Route::try_from(route(&["a", "b"], 1, &["", "http://b"])).expect("valid");
        let (a, b) = (&route.members[0], &route.members[1]);
        assert_eq!(route.primary_member(), Some(b));
        assert_eq!(route.primary_endpoint(), Some("http://b"));
        assert_eq!(route.endpoint_of(a), None);
        assert!(route.is_equivalent(&route.clone().without_endpoints()));
        assert!(!route.is_equivalent(&Route::default()));
        assert_eq!(Route::default().primary_endpoint(), None);
    }
}
