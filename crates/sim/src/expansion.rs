//! A scenario as it runs: behind the flows that are written stand flows of the run's own.
//!
//! ```text
//! flows of the scenario | first halves of split connections | connections of pages
//! ```

use std::borrow::Cow;

use lasthop_home::scenario::Scenario;

use crate::halves::Halves;
use crate::web::Slots;

/// See the module.
pub struct Expansion<'s> {
    /// The scenario with all flows.
    pub home: Cow<'s, Scenario>,
    /// Which of them are halves of split connections.
    pub halves: Halves,
    /// Which of them are connections of pages.
    pub pages: Slots,
}

impl<'s> Expansion<'s> {
    /// Of the scenario as written.
    pub fn new(scenario: &'s Scenario) -> Self {
        let mut home = Cow::Borrowed(scenario);
        let halves = Halves::expand(&mut home);
        let pages = Slots::expand(&mut home);
        Self { home, halves, pages }
    }
}
