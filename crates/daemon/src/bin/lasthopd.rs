//! The program `lasthopd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lasthop_daemon::main()
}
