//! `recorded FOLDER`: decodes recorded responses and compares them with the folder's index.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: recorded FOLDER");
        return ExitCode::from(2);
    };
    let (seen, wrong) = tests::recorded::check(Path::new(&folder));
    wrong.iter().for_each(|line| println!("{line}"));
    println!("{seen} responses, {} differences", wrong.len());
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
