//! Which requests are calls of a program, and which are the rest of one that the kernel cut.

/// Most bytes of a request: 256 pages, which is as far as the kernel goes.
pub const LARGEST: u32 = 1 << 20;
/// Memory at an odd address reaches over one page more, and the kernel cuts there.
const PAGE: u32 = 4096;

/// Who asks for what, from which byte of which open file on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The asking thread.
    pub thread: u32,
    /// The open file.
    pub handle: u64,
    /// First byte.
    pub offset: u64,
}

/// What is known of a call that is not whole yet.
#[derive(Debug, Default)]
pub struct Calls {
    rest: Option<Request>,
}

impl Calls {
    /// Whether a request for `bytes` begins a call. Calls of up to [`LARGEST`] are known exactly; of a longer one, each
    /// whole [`LARGEST`] passes for a call of its own.
    pub fn begins(&mut self, request: Request, bytes: u32) -> bool {
        let continues = self.rest.take() == Some(request);
        if bytes > LARGEST - PAGE && bytes < LARGEST {
            self.rest = Some(Request { offset: request.offset + u64::from(bytes), ..request });
        }
        !continues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Request {
        Request { thread: 7, handle: 1, offset }
    }

    #[test]
    fn a_call_of_a_mebibyte_from_an_odd_address_is_one() {
        let mut calls = Calls::default();
        for start in [0, u64::from(LARGEST)] {
            assert!(calls.begins(at(start), LARGEST - 32));
            assert!(!calls.begins(at(start + u64::from(LARGEST) - 32), 32));
        }
    }

    #[test]
    fn calls_that_follow_each_other_are_many() {
        let mut calls = Calls::default();
        for bytes in [512, LARGEST - PAGE, LARGEST] {
            assert!((0..3).all(|n| calls.begins(at(n * u64::from(bytes)), bytes)), "{bytes}");
        }
    }

    #[test]
    fn another_thread_or_file_goes_on_with_nobodys_call() {
        for other in [Request { thread: 8, ..at(1_048_544) }, Request { handle: 2, ..at(1_048_544) }] {
            let mut calls = Calls::default();
            calls.begins(at(0), LARGEST - 32);
            assert!(calls.begins(other, 32));
        }
    }
}
