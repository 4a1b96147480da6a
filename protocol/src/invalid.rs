//! Why a value from outside was refused, with the path of the field that holds it.

use std::fmt::Display;

/// A value that breaks a rule of the protocol (gazette-spec 1.4), named by its path inside the
/// message.
///
/// It prints as Gazette prints it: `Selector.Include.Labels[0].Name: invalid length (1; ...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    path: String,
    reason: String,
}

impl Invalid {
    pub fn new(reason: impl Into<String>) -> Self {
        Invalid { path: String::new(), reason: reason.into() }
    }

    /// Puts `parent` in front of the path, as the error leaves a nested message.
    pub fn within(mut self, parent: impl Display) -> Self {
        self.path = if self.path.is_empty() {
            parent.to_string()
        } else {
            format!("{parent}.{}", self.path)
        };
        self
    }

    /// The dotted path of the offending field; empty when the value itself is meant.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "{}: {}", self.path, self.reason)
        }
    }
}

impl std::error::Error for Invalid {}

/// Gazette answers a request that does not validate with gRPC code Unknown and the bare text
/// (gazette-spec 1.1); its clients show that text.
impl From<Invalid> for tonic::Status {
    fn from(invalid: Invalid) -> Self {
        tonic::Status::unknown(invalid.to_string())
    }
}

/// `result.at("Name")` names the field that a nested check was about.
pub(crate) trait At<T> {
    fn at(self, parent: impl Display) -> Result<T, Invalid>;
}

impl<T> At<T> for Result<T, Invalid> {
    fn at(self, parent: impl Display) -> Result<T, Invalid> {
        self.map_err(|invalid| invalid.within(parent))
    }
}

/// Refuses a value outside `min..=max`; `name` is the field's in Gazette's messages.
pub(crate) fn bounded<T>(name: &str, value: T, min: T, max: T) -> Result<T, Invalid>
where
    T: PartialOrd + Display,
{
    if value < min || value > max {
        return Err(Invalid::new(format!(
            "invalid {name} ({value}; expected {min} <= {name} <= {max})"
        )));
    }
    Ok(value)
}

/// Refuses a value below `min`. Gazette names the upper bound of such a field all the same.
pub(crate) fn at_least(name: &str, value: i64, min: i64) -> Result<i64, Invalid> {
    if value < min {
        return Err(Invalid::new(format!(
            "invalid {name} ({value}; expected {min} <= {name} <= MaxInt64)"
        )));
    }
    Ok(value)
}

/// Refuses a field that this kind of message may not carry.
pub(crate) fn unset(name: &str, is_unset: bool) -> Result<(), Invalid> {
    if is_unset { Ok(()) } else { Err(Invalid::new(format!("unexpected {name}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_nest_outward_and_print_before_the_reason() {
        let invalid = Invalid::new("too long");
        assert_eq!(invalid.to_string(), "too long");
        let invalid = invalid.within("Name").within(format_args!("Labels[{}]", 3));
        assert_eq!(invalid.path(), "Labels[3].Name");
        assert_eq!(invalid.to_string(), "Labels[3].Name: too long");
    }

    #[test]
    fn a_refusal_is_grpc_unknown_with_the_bare_text() {
        let status = tonic::Status::from(Invalid::new("too long").within("Name"));
        assert_eq!(status.code(), tonic::Code::Unknown);
        assert_eq!(status.message(), "Name: too long");
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(bounded("Length", 1, 1, 5), Ok(1));
        assert_eq!(bounded("Length", 5, 1, 5), Ok(5));
        let text = bounded("Length", 6, 1, 5).unwrap_err().to_string();
        assert_eq!(text, "invalid Length (6; expected 1 <= Length <= 5)");
        assert_eq!(at_least("Offset", -1, -1), Ok(-1));
        let text = at_least("Offset", -2, -1).unwrap_err().to_string();
        assert_eq!(text, "invalid Offset (-2; expected -1 <= Offset <= MaxInt64)");
    }
}
