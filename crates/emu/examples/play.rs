//! Plays a scenario file without a controller and prints its report:
//! `play FILE [key=value].. ['HOST: command'].. [FILE.pcapng]`.

use lasthop_emu::{Options, Progress, run};
use lasthop_home::scenario::Scenario;
use std::path::Path;
use std::sync::mpsc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("play FILE [key=value]..");
        std::process::exit(2);
    };
    let (progress, told) = mpsc::channel();
    let teller = std::thread::spawn(move || {
        for progress in told {
            if let Progress::Note(note) = progress {
                eprintln!("{note}");
            }
        }
    });
    let mut options = Options { progress: Some(progress), ..Options::default() };
    let mut set = Vec::new();
    for argument in arguments {
        match argument.split_once(": ") {
            Some((host, command)) => options.exec.push((host.to_owned(), command.to_owned())),
            None if argument.ends_with(".pcapng") => options.pcap = Some(argument.into()),
            None => set.push(argument),
        }
    }
    let outcome = Scenario::load(Path::new(&file), &set)
        .map_err(lasthop_emu::Error::from)
        .and_then(|scenario| run(&scenario, options));
    let _ = teller.join();
    match outcome {
        Ok(outcome) => print!("{}", outcome.report.to_json()),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|e| format!(": {e}")).unwrap_or_default();
            eprintln!("{error}{cause}");
            std::process::exit(1);
        }
    }
}
