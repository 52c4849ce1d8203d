//! The program `lasthop-message`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lasthop_message::main()
}
