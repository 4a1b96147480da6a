//! A seed's operations, one after the other, and the judgement of each answer.

use super::chance::Chance;
use super::{Model, Op, Outcome};

/// The seeds that a test runs: that of `$SEED` alone, or the first `$SEEDS`, `otherwise` unless
/// that is given.
pub fn seeds(otherwise: u64) -> Vec<u64> {
    let number = |variable: &str| {
        let text = std::env::var(variable).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
    };
    match number("SEED") {
        Some(seed) => vec![seed],
        None => (0..number("SEEDS").unwrap_or(otherwise)).collect(),
    }
}

/// A run of one seed.
#[derive(Debug)]
pub struct Trial {
    seed: u64,
    chance: Chance,
    model: Model,
    /// What was done, with its answers.
    done: Vec<String>,
}

impl Trial {
    pub fn new(seed: u64) -> Self {
        Trial { seed, chance: Chance::new(seed), model: Model::default(), done: Vec::new() }
    }

    /// The next operation. Its answer is to be [`Trial::judge`]d before the next one.
    pub fn op(&mut self) -> Op {
        self.chance.op(&self.model)
    }

    /// Panics, with the seed and all that was done, where the model does not give this answer.
    #[track_caller]
    pub fn judge(&mut self, op: &Op, got: &Outcome) {
        let allowed = self.model.apply(op);
        self.done.push(format!("{op} -> {got}"));
        assert!(
            allowed.contains(got),
            "SEED={}: after\n  {}\nthe model says {}",
            self.seed,
            self.done.join("\n  "),
            allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
        );
    }
}
