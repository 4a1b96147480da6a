//! What a start found, told in the log: a line for what was done, and one for each thing that
//! somebody should look at.

use index::Recovered;

/// Findings of a kind that are named one by one; `courant status` has all of them.
const NAMED_MAX: usize = 100;

/// Tells it. A clean stop, after which there is nothing to recover, is not worth a line.
pub(crate) fn tell(recovered: &Recovered) {
    let Recovered { journals, records, bytes, is_other_boot, cut_records, .. } = *recovered;
    if !recovered.is_clean && journals > 0 {
        tracing::info!(
            journals,
            records,
            bytes,
            is_other_boot,
            "recovered from the log: the last run did not stop cleanly"
        );
    }
    if cut_records > 0 {
        tracing::warn!(cut_records, "torn records were cut off, none acknowledged on disk");
    }
    for (journal, span) in named("lost", &recovered.lost) {
        tracing::warn!(%journal, %span, "lost: a power cut took appends at `memory`");
    }
    for (journal, span) in named("damaged", &recovered.damaged) {
        tracing::error!(%journal, %span, "damaged: local bytes do not verify, and are not served");
    }
    for (journal, span) in named("healed", &recovered.healed) {
        tracing::warn!(
            %journal,
            %span,
            "healed: the mirror was wrong, and was written again from the log: look after the disk"
        );
    }
    if recovered.is_unmarked {
        tracing::warn!(
            file = index::FORMAT_FILE,
            "the mark of the data directory was missing, and was made anew"
        );
    }
    for (begin, end) in named("places of the log", &recovered.damaged_log) {
        tracing::error!(%begin, %end, "the log is damaged; what was cut out is kept in `aside`");
    }
    for file in named("files of no journal", &recovered.orphans) {
        tracing::warn!(%file, "a local file of no journal went to lost+found");
    }
}

/// The first of many findings; that there are more is told once.
fn named<'a, T>(what: &str, findings: &'a [T]) -> impl Iterator<Item = &'a T> {
    if findings.len() > NAMED_MAX {
        let (all, first) = (findings.len(), NAMED_MAX);
        tracing::warn!(what, all, first, "only the first are named here");
    }
    findings.iter().take(NAMED_MAX)
}
