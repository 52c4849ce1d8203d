//! The program `lasthop-web`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lasthop_web::main()
}
