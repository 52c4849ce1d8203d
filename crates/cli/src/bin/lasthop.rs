//! The program `lasthop`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lasthop_cli::main()
}
