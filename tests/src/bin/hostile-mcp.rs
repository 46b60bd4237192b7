//! The hostile MCP server over standard input and output: `hostile-mcp SCENARIO`.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use tests::hostile::{Act, Hostile};

fn main() -> ExitCode {
    let mut server = Hostile::new(std::env::args().nth(1).unwrap_or_default());
    let mut acts = server.hello();
    let mut lines = io::stdin().lock().lines();
    loop {
        for act in acts {
            if !done(act) {
                return ExitCode::FAILURE;
            }
        }
        let Some(Ok(line)) = lines.next() else { return ExitCode::SUCCESS };
        acts = server.handle(&line);
    }
}

/// Executes an action. Returns whether the server continues after it.
fn done(act: Act) -> bool {
    let mut out = io::stdout().lock();
    let written = match act {
        Act::Say(line) => writeln!(out, "{line}"),
        Act::Flood(line, times) => (0..times).try_for_each(|_| writeln!(out, "{line}")),
        Act::Err(bytes) => io::stderr().write_all(&vec![b'e'; bytes]),
        Act::Exit => return false,
    };
    written.and_then(|()| out.flush()).is_ok()
}
