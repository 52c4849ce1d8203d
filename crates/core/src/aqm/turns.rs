//! Two lists of whose turn it is, new ones before old ones: what FQ-CoDel keeps of flows, and the air time scheduler of
//! stations.
//!
//! ```text
//! the first of the new list, else of the old one:
//!   deficit <= 0:  deficit += quantum, to the end of the old list
//!   nothing there: from the new list to the end of the old one; from the old list out
//! ```
//! A member that comes in gets a quantum. It may not come in anew while it stands in the old list without packets:
//! otherwise whoever sends little by little would always be new.
//!
//! Source: RFC 8290 section 4.2; Hoiland-Jorgensen et al., "Ending the Anomaly" (USENIX ATC 2017), Algorithm 3.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum List {
    /// In neither.
    #[default]
    Out,
    New,
    Old,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    deficit: i64,
    list: List,
}

/// See the module. Members are numbers from 0.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    members: Vec<Member>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl Turns {
    /// The member has something to send. True: it is new.
    pub fn come(&mut self, member: u32, quantum: i64) -> bool {
        if self.members.len() <= member as usize {
            self.members.resize(member as usize + 1, Member::default());
        }
        let state = &mut self.members[member as usize];
        let is_new = state.list == List::Out;
        if is_new {
            *state = Member { deficit: quantum, list: List::New };
            self.new.push_back(member);
        }
        is_new
    }

    /// Whose turn it is. The caller tries to serve it and calls [`Self::go`] when there is nothing to serve.
    pub fn next(&mut self, quantum: i64) -> Option<u32> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let member = *list.front()?;
            let state = &mut self.members[member as usize];
            if state.deficit > 0 {
                return Some(member);
            }
            list.pop_front();
            state.deficit += quantum;
            state.list = List::Old;
            self.old.push_back(member);
        }
    }

    /// The member whose turn it is has nothing.
    pub fn go(&mut self, member: u32) {
        let state = &mut self.members[member as usize];
        if state.list == List::New {
            self.new.pop_front();
            state.list = List::Old;
            self.old.push_back(member);
        } else {
            self.old.pop_front();
            state.list = List::Out;
        }
    }

    /// Takes what the member used out of its deficit.
    pub fn charge(&mut self, member: u32, cost: i64) {
        if let Some(state) = self.members.get_mut(member as usize) {
            state.deficit = state.deficit.saturating_sub(cost);
        }
    }

    /// Everybody in one of the lists.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.new.iter().chain(&self.old).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ones_go_first_and_then_stand_in_line() {
        let mut turns = Turns::default();
        turns.come(0, 100);
        turns.charge(0, 150);
        // 0 has used its quantum: 1, which is new, comes first.
        turns.come(1, 100);
        assert_eq!(turns.next(100), Some(1));
        turns.charge(1, 100);
        assert_eq!(turns.next(100), Some(0));
        turns.charge(0, 50);
        assert_eq!(turns.next(100), Some(1));
    }

    #[test]
    fn whoever_comes_back_before_its_turn_is_not_new() {
        let mut turns = Turns::default();
        assert!(turns.come(0, 100) && turns.come(1, 100));
        turns.charge(0, 100);
        turns.charge(1, 100);
        assert_eq!(turns.next(100), Some(0));
        // Both stand in the old list. 2 is new, is found empty, and has to wait there, too.
        turns.come(2, 100);
        assert_eq!(turns.next(100), Some(2));
        turns.go(2);
        assert!(!turns.come(2, 100));
        assert_eq!(turns.iter().collect::<Vec<_>>(), [0, 1, 2]);
        turns.go(0);
        assert_eq!(turns.iter().collect::<Vec<_>>(), [1, 2]);
        assert!(turns.come(0, 100));
    }

    #[test]
    fn a_debt_of_many_quanta_is_paid_turn_by_turn() {
        let mut turns = Turns::default();
        turns.come(0, 100);
        turns.come(1, 100);
        turns.charge(0, 350);
        let mut served = Vec::new();
        for _each in 0..5 {
            let member = turns.next(100).unwrap();
            served.push(member);
            turns.charge(member, 100);
        }
        // 0 is at -250: three quanta make 50, after three more turns of 1.
        assert_eq!(served, [1, 1, 1, 0, 1]);
    }
}
