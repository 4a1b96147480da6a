//! What befalls the surroundings of real daemons while they serve: they stand still, their store is
//! away, another broker writes to it, bits of their files flip.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod backup;
mod denied;
mod foreign;
mod outage;
mod repair;
mod rot;
mod second;
mod standing;
