//! Which requests a journal takes, and whether it is suspended.

use crate::invalid::At;
use crate::{Invalid, Offset, wire::gazette};

/// Which requests a journal takes. The wire's 0 (`NOT_SPECIFIED`) is kept apart so that a spec
/// comes back as it was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flags {
    #[default]
    NotSpecified,
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

impl Flags {
    pub const ALL: [Flags; 4] =
        [Flags::NotSpecified, Flags::ReadOnly, Flags::WriteOnly, Flags::ReadWrite];

    pub fn may_read(self) -> bool {
        self != Flags::WriteOnly
    }

    pub fn may_write(self) -> bool {
        self != Flags::ReadOnly
    }

    /// The wire's number. They are bits, but only one may be set.
    pub const fn number(self) -> u32 {
        match self {
            Flags::NotSpecified => 0,
            Flags::ReadOnly => 1,
            Flags::WriteOnly => 2,
            Flags::ReadWrite => 4,
        }
    }

    /// The name in YAML and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Flags::NotSpecified => "NOT_SPECIFIED",
            Flags::ReadOnly => "O_RDONLY",
            Flags::WriteOnly => "O_WRONLY",
            Flags::ReadWrite => "O_RDWR",
        }
    }
}

impl TryFrom<u32> for Flags {
    type Error = Invalid;

    fn try_from(number: u32) -> Result<Self, Invalid> {
        Flags::ALL
            .into_iter()
            .find(|flags| flags.number() == number)
            .ok_or_else(|| Invalid::new(format!("invalid Flags combination ({number})")))
    }
}

impl std::str::FromStr for Flags {
    type Err = Invalid;

    /// Reads a name or a number, as YAML may have either.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Ok(number) = text.parse::<u32>() {
            return Flags::try_from(number);
        }
        Flags::ALL
            .into_iter()
            .find(|flags| flags.name() == text)
            .ok_or_else(|| Invalid::new(format!("invalid Flags ({text})")))
    }
}

impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// `JournalSpec.Suspend`: which replicas are given up while the journal is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspend {
    pub level: SuspendLevel,
    /// Appends resume at this offset or above.
    pub offset: Offset,
}

/// How far a journal is suspended, from not at all to no replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SuspendLevel {
    #[default]
    None,
    /// One replica stays.
    Partial,
    /// No replica stays: reads are answered `SUSPENDED`.
    Full,
}

impl SuspendLevel {
    pub const ALL: [SuspendLevel; 3] =
        [SuspendLevel::None, SuspendLevel::Partial, SuspendLevel::Full];

    /// The wire's number.
    pub const fn number(self) -> i32 {
        match self {
            SuspendLevel::None => 0,
            SuspendLevel::Partial => 1,
            SuspendLevel::Full => 2,
        }
    }

    /// The name in YAML and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            SuspendLevel::None => "NONE",
            SuspendLevel::Partial => "PARTIAL",
            SuspendLevel::Full => "FULL",
        }
    }
}

impl TryFrom<i32> for SuspendLevel {
    type Error = Invalid;

    fn try_from(number: i32) -> Result<Self, Invalid> {
        SuspendLevel::ALL
            .into_iter()
            .find(|level| level.number() == number)
            .ok_or_else(|| Invalid::new(format!("invalid Level ({number})")))
    }
}

impl std::str::FromStr for SuspendLevel {
    type Err = Invalid;

    /// Reads a name or a number, as YAML may have either.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Ok(number) = text.parse::<i32>() {
            return SuspendLevel::try_from(number);
        }
        SuspendLevel::ALL
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or_else(|| Invalid::new(format!("invalid Level ({text})")))
    }
}

impl std::fmt::Display for SuspendLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<gazette::journal_spec::Suspend> for Suspend {
    type Error = Invalid;

    fn try_from(suspend: gazette::journal_spec::Suspend) -> Result<Self, Invalid> {
        let level = SuspendLevel::try_from(suspend.level).at("Level")?;
        Ok(Suspend { level, offset: Offset::new(suspend.offset)? })
    }
}

impl From<Suspend> for gazette::journal_spec::Suspend {
    fn from(suspend: Suspend) -> Self {
        let (level, offset) = (suspend.level.number(), suspend.offset.get());
        gazette::journal_spec::Suspend { level, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_one_bit_or_none() {
        use gazette::journal_spec::Flag as Wire;
        for flags in Flags::ALL {
            let number = i32::try_from(flags.number()).expect("small");
            assert_eq!(Wire::try_from(number).expect("known").as_str_name(), flags.name());
            assert_eq!(Flags::try_from(flags.number()), Ok(flags));
            assert_eq!(flags.name().parse(), Ok(flags));
            assert_eq!(flags.number().to_string().parse(), Ok(flags));
        }
        for combined in [3, 5, 6, 7, 8] {
            let text = Flags::try_from(combined).unwrap_err().to_string();
            assert_eq!(text, format!("invalid Flags combination ({combined})"));
        }
        assert!("O_APPEND".parse::<Flags>().is_err());
    }

    #[test]
    fn flags_tell_what_is_allowed() {
        let cases = [
            (Flags::NotSpecified, true, true),
            (Flags::ReadOnly, true, false),
            (Flags::WriteOnly, false, true),
            (Flags::ReadWrite, true, true),
        ];
        for (flags, may_read, may_write) in cases {
            assert_eq!((flags.may_read(), flags.may_write()), (may_read, may_write));
        }
    }

    #[test]
    fn levels_are_those_of_the_wire() {
        use gazette::journal_spec::suspend::Level as Wire;
        for level in SuspendLevel::ALL {
            let wire = Wire::try_from(level.number()).expect("known");
            assert_eq!(wire.as_str_name(), level.name());
            assert_eq!(SuspendLevel::try_from(level.number()), Ok(level));
            assert_eq!(level.name().parse(), Ok(level));
        }
        let suspend = Suspend { level: SuspendLevel::Full, offset: Offset::from(7) };
        assert_eq!(Suspend::try_from(gazette::journal_spec::Suspend::from(suspend)), Ok(suspend));
        let message = |level, offset| gazette::journal_spec::Suspend { level, offset };
        assert_eq!(
            Suspend::try_from(message(3, 0)).unwrap_err().to_string(),
            "Level: invalid Level (3)"
        );
        assert!(Suspend::try_from(message(0, -1)).is_err());
    }
}
