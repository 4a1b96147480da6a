//! Numbers that were measured by turns, and what of them is told.

use tokio::time::Instant;

/// The same thing done by Courant and by its rival, a number for each turn.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    pub ours: Vec<f64>,
    /// Empty where there is nothing to be set against.
    pub theirs: Vec<f64>,
}

/// The middle of some numbers, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Samples {
    /// Measures one after the other, again and again, so that whatever the machine does besides
    /// falls on both.
    pub fn by_turns(
        repeats: usize,
        mut ours: impl FnMut() -> f64,
        mut theirs: impl FnMut() -> f64,
    ) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..repeats {
            samples.ours.push(ours());
            samples.theirs.push(theirs());
        }
        samples
    }

    /// What `of` makes of each turn's pair.
    pub fn ratio(&self, of: impl Fn(f64, f64) -> f64) -> Option<Spread> {
        let pairs = self.ours.iter().zip(&self.theirs);
        let ratios: Vec<f64> = pairs.map(|(ours, theirs)| of(*ours, *theirs)).collect();
        (!ratios.is_empty()).then(|| Spread::of(&ratios))
    }
}

impl Spread {
    /// Of numbers of which there is at least one.
    pub fn of(numbers: &[f64]) -> Spread {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (middle, last) = (sorted.len() / 2, sorted.len() - 1);
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Spread { median, min: sorted[0], max: sorted[last] }
    }
}

/// The median of some numbers.
pub fn median(numbers: &[f64]) -> f64 {
    Spread::of(numbers).median
}

/// Seconds since a moment.
pub fn since(moment: Instant) -> f64 {
    moment.elapsed().as_secs_f64()
}
