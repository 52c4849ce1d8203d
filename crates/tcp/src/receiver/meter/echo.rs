//! TCP probing's receiver: a probe is answered with its number.

use crate::note::Note;

#[derive(Debug, Default)]
pub(super) struct Echo {
    /// What the segment that comes next is marked with.
    mark: u32,
    /// Of the newest probe.
    number: Option<u32>,
}

impl Echo {
    pub(super) fn on_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    pub(super) fn on_segment(&mut self, bytes: u32) {
        if bytes == 0 {
            self.number = Some(self.mark);
        }
    }

    pub(super) fn note(&self) -> Option<Note> {
        self.number.map(|number| Note::Probe { number })
    }
}
