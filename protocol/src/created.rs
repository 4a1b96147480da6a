//! Names under which no journal is created, wherever that is decided: by a broker for good, by a
//! client early.

/// Path components that mean something else in a mount: its control directory, and the file by
/// which the outer one of two nested journals shows.
pub const RESERVED: [&str; 2] = [".courant", ".journal"];

/// Temporary files of programs that replace a file by rename, as [`Pattern`](crate::Pattern)s of
/// the last component. A journal can't be replaced, so they shall fail at their first step. A
/// broker refuses them unless its templates say otherwise.
pub const TEMPORARY: [&str; 8] = [
    ".*.??????",     // rsync without --inplace
    "sed??????",     // sed -i
    "*.gawk.??????", // gawk -i inplace
    "*.tmp",         // many
    "*~",            // backups of vim and Emacs
    ".*.sw?",        // swap files of vim
    "4913",          // vim tries whether it may write in the directory
    ".#*",           // locks of Emacs
];
