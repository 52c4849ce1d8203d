//! What a sweep keeps: every finished run once, under a key that says what the run was, and a table of them all.
//!
//! A run of the simulator is a pure function of a scenario's text, the contents of the traces that it names, what `--set` changed,
//! the seed, and the revision of the program. [`Key`] is the SHA-256 of these, and [`Store`] a folder that holds a report under each:
//! written aside, then renamed, so that a process that is killed, or a disk that is full, costs the run under way and no other.
//! [`Table`] makes rows of a [`Plan`]'s reports, the same bytes whoever ran what when; `lasthop sweep -o FOLDER/` and the Python
//! package `lasthop` share all of it.
//!
//! No clock, no randomness and no simulator is here: who runs a plan is the caller's.

mod figures;
mod folder;
mod key;
mod manifest;
mod parquet;
mod plan;
mod row;
mod source;
mod table;

pub use figures::{Chooser, Figures, MOST_COLUMNS, Names, figures, is_called, row_of};
pub use folder::Store;
pub use key::{Key, Recipe};
pub use manifest::write_table;
pub use plan::{Cell, MOST_RUNS, Plan};
pub use row::{Row, cell, scalar_of, scalars, typed};
pub use source::Source;
pub use table::{Batch, Column, Kind, Table, Values};

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system said no; nothing that was there before is lost.
    #[error("{what}")]
    Io {
        /// What was being done, and to which file.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A folder that is none of a sweep, or a file in it that is not as it was written.
    #[error("{0}")]
    Strange(String),
}

impl StoreError {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
