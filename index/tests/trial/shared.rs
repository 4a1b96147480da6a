//! What the trial has for tests of directories that a load has left.

pub mod left;
pub mod load;
pub mod model;
