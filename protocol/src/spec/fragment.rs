//! How a journal's bytes are cut into fragments, and where those are kept.

use crate::duration;
use crate::invalid::{At, bounded};
use crate::store::{Scheme, StoreUrl};
use crate::{Codec, Invalid, PostfixTemplate, wire::gazette};
use std::time::Duration;

/// Bounds of `length`, in bytes.
const LENGTH_MIN: u64 = 1 << 10;
const LENGTH_MAX: u64 = 1 << 34;
const REFRESH_MIN: Duration = Duration::from_secs(1);
const REFRESH_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const FLUSH_MIN: Duration = Duration::from_secs(60);

/// How the journal's bytes are cut into fragments, and where those are kept.
///
/// Nothing has a default: Gazette refuses a spec that leaves `length`, `codec` or
/// `refresh_interval` out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentSpec {
    /// Uncompressed bytes past which a fragment rolls, 2^10..=2^34.
    pub length: u64,
    pub codec: Codec,
    /// Store URLs; the first takes new fragments. None: nothing is persisted.
    pub stores: Vec<String>,
    /// 1 s to 24 h.
    pub refresh_interval: Duration,
    /// Zero keeps for ever. So does a negative one on the wire, which becomes zero here.
    pub retention: Duration,
    /// At least a minute. Zero: no roll by time.
    pub flush_interval: Duration,
    pub path_postfix_template: String,
}

impl FragmentSpec {
    pub fn validate(&self) -> Result<(), Invalid> {
        bounded("Length", self.length, LENGTH_MIN, LENGTH_MAX)?;
        self.check_stores()?;
        self.check_intervals()?;
        PostfixTemplate::parse(&self.path_postfix_template).map(drop).at("PathPostfixTemplate")
    }

    fn check_stores(&self) -> Result<(), Invalid> {
        for (at, store) in self.stores.iter().enumerate() {
            let url = StoreUrl::parse(store).at(format_args!("Stores[{at}]"))?;
            if at == 0 && url.scheme() == Scheme::File && self.codec == Codec::GzipOffload {
                let reason = format!("{} is incompatible with file store ({store})", self.codec);
                return Err(Invalid::new(reason));
            }
        }
        Ok(())
    }

    fn check_intervals(&self) -> Result<(), Invalid> {
        if self.refresh_interval < REFRESH_MIN || self.refresh_interval > REFRESH_MAX {
            return Err(Invalid::new(format!(
                "invalid RefreshInterval ({}; expected {} <= interval <= {})",
                duration::format(self.refresh_interval),
                duration::format(REFRESH_MIN),
                duration::format(REFRESH_MAX),
            )));
        }
        if !self.flush_interval.is_zero() && self.flush_interval < FLUSH_MIN {
            return Err(Invalid::new(format!(
                "invalid FlushInterval ({}; expected 0 or >= {})",
                duration::format(self.flush_interval),
                duration::format(FLUSH_MIN),
            )));
        }
        Ok(())
    }
}

impl TryFrom<gazette::journal_spec::Fragment> for FragmentSpec {
    type Error = Invalid;

    fn try_from(fragment: gazette::journal_spec::Fragment) -> Result<Self, Invalid> {
        // A negative length is below the minimum like any other.
        let minimum = i64::try_from(LENGTH_MIN).expect("small");
        let maximum = i64::try_from(LENGTH_MAX).expect("small");
        let length = bounded("Length", fragment.length, minimum, maximum)?;
        let spec = FragmentSpec {
            length: length.unsigned_abs(),
            codec: Codec::try_from(fragment.compression_codec).at("CompressionCodec")?,
            stores: fragment.stores,
            refresh_interval: duration::from_wire(fragment.refresh_interval)
                .at("RefreshInterval")?,
            retention: duration::from_wire_or_zero(fragment.retention).at("Retention")?,
            flush_interval: duration::from_wire(fragment.flush_interval).at("FlushInterval")?,
            path_postfix_template: fragment.path_postfix_template,
        };
        spec.validate()?;
        Ok(spec)
    }
}

impl From<FragmentSpec> for gazette::journal_spec::Fragment {
    fn from(fragment: FragmentSpec) -> Self {
        gazette::journal_spec::Fragment {
            length: i64::try_from(fragment.length).unwrap_or(i64::MAX),
            compression_codec: fragment.codec.number(),
            stores: fragment.stores,
            refresh_interval: Some(duration::to_wire(fragment.refresh_interval)),
            retention: Some(duration::to_wire(fragment.retention)),
            flush_interval: Some(duration::to_wire(fragment.flush_interval)),
            path_postfix_template: fragment.path_postfix_template,
        }
    }
}
