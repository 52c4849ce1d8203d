//! Sequence numbers compare modulo 2^32 (RFC 9293 section 3.4): of two numbers less than 2^31 apart, one is later.

/// Whether `a` is later than `b`.
#[must_use]
pub const fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// The later of two.
#[must_use]
pub const fn later(a: u32, b: u32) -> u32 {
    if after(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_numbers_are_later_across_the_wrap() {
        assert!(after(3, u32::MAX - 3));
        assert!(!after(u32::MAX - 3, 3));
        assert!(!after(7, 7));
        assert_eq!(later(3, u32::MAX), 3);
    }
}
