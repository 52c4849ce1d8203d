//! `cargo run -p lasthop-manual --example write -- FOLDER`: manual pages and completions, for `make man`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("say where: a folder for manual pages and completions")?;
    for file in lasthop_manual::write(Path::new(&folder))? {
        println!("{}", file.display());
    }
    Ok(())
}
