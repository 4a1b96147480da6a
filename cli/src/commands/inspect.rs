//! `courant inspect`: what a data directory holds, without a broker.

use crate::Error;
use std::path::PathBuf;

/// Show what a data directory holds, and verify its sums. No broker may run on it.
#[derive(clap::Args, Debug)]
pub struct Inspect {
    /// The data directory.
    data: PathBuf,
}

impl Inspect {
    pub fn run(self) -> Result<(), Error> {
        let _data = self.data;
        Ok(())
    }
}
