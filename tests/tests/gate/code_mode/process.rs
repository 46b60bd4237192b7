//! Effects of scripts on the process: its memory, and its output to the terminal. Each test uses a separate process.

use std::env;
use std::process::{Command, Output};

use tool_runtime::Outcome;

use crate::code_mode::escapes::{REFUSED, sources};
use crate::code_mode::run;

/// The most memory of a process with one script at a time, in KiB, the program itself included.
const PEAK: usize = 256 << 10;

/// Scripts that ask for much more memory than they may have, one after the other.
fn bombs() -> Vec<(&'static str, String)> {
    let text = "let s = \"CANARY\"; s.pad(100000, 'a'); ";
    let many = "let a = []; a.pad(4096, ()); ";
    let maps = "let m = #{ a: 1 }; let a = []; a.pad(1300, m); ";
    let copies = (0..44).map(|at| format!("let b{at} = a; ")).collect::<Vec<_>>().concat();
    let of = |what, begin: &str, rest: &str| (what, format!("{begin}{rest}"));
    vec![
        of("a text in each place of a text", text, "let t = s; s.replace(\"a\", t);"),
        of("a text between all letters", text, "let t = s; s.replace(\"\", t);"),
        of("a text for each letter", text, "let t = s; s.replace('a', t);"),
        of("a text of pieces", text, "s.split(\"\")"),
        of("a text of letters", text, "s.to_chars()"),
        of("a text of bytes", text, "s.to_blob()"),
        of("walks through a text", text, "let a = []; loop { a.push(s.chars()); }"),
        of("a text without padding", text, "s.pad(120000, \"\");"),
        of("an array in each place", many, "let b = a; for i in 0..4096 { a[i] = b; }"),
        of("an array in each place of each place", many, "let b = a; for i in 0..4096 { a[i] = b; a[i][i] = b; }"),
        of("an array in itself", "let a = [0, 0]; ", "loop { a[0] = a; a[1] = a; }"),
        of("texts in each place", text, "let a = []; a.pad(4096, ()); for i in 0..4096 { a[i] = s + i; }"),
        of("bytes in each place", many, "let b = \"x\"; b.pad(4000, 'x'); for i in 0..4096 { a[i] = b.to_blob(); }"),
        of("long names", text, "let m = #{}; for i in 0..4096 { m[s + i] = 1; }"),
        of("long names that are set", text, "let m = #{}; for i in 0..4096 { m.set(s + i, 1); }"),
        of("a long name in each place", text, "let m = #{}; m[s] = 1; let a = []; a.pad(4096, m); a.len()"),
        ("a long name, written often", format!("{text}let m = #{{}}; m[s] = 1; [{}]", "m,".repeat(4_000))),
        of("a map in each member", many, "let m = #{}; for i in 0..4096 { m[`k${i}`] = a; }"),
        of("maps in each member", maps, "let m = #{}; for i in 0..4096 { m[`k${i}`] = a; }"),
        ("all that variables may hold", format!("{maps}{copies}throw 1")),
        (
            "more than variables may hold",
            format!("{maps}{copies}{}throw 1", copies.replace("let ", "").replace(" = a", "[0] = a")),
        ),
        ("all that an expression may hold", format!("{maps}{}a{} throw 1", "(a == ".repeat(20), ")".repeat(20) + ";")),
        of("a text as a result", text, "let a = []; a.pad(40, s); a"),
        of("lines that are printed", text, "for i in 0..1000 { print(s); } throw 1"),
        (
            "quotes in quotes",
            "let s = \"\\\"\"; s.pad(60000, '\"'); for i in 0..9 { s = [s].to_debug(); } throw s".to_owned(),
        ),
    ]
}

/// The other process: runs the requested scripts, and loads the corpus before it measures.
#[tokio::test]
async fn another_process() {
    let Ok(asked) = env::var("CODE_MODE_SCRIPTS") else { return };
    let scripts: Vec<(&str, String)> = match asked.as_str() {
        "bombs" => bombs(),
        _ => REFUSED.iter().map(|(what, script)| (*what, (*script).to_owned())).chain(sources()).collect(),
    };
    for (what, script) in scripts {
        let (result, _) = run(&script).await;
        let text = format!("{} {:?}", result.to_model(), result.detail());
        assert!(!result.is_ok() && !text.contains("CANARY"), "{what}: ended well");
        assert_ne!(result.outcome(), Outcome::Timeout, "{what}");
        println!("DID {what}");
    }
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").expect("the state of this process");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        println!("PEAK {}", peak.trim().trim_end_matches(" kB"));
    }
}

/// A process with at most 4 GiB of addresses, so that a script that gets its way ends that process only.
fn process(scripts: &str) -> Output {
    let program = env::current_exe().expect("this program");
    let mut command = if cfg!(target_os = "linux") { Command::new("sh") } else { Command::new(&program) };
    if cfg!(target_os = "linux") {
        command.args(["-c", "ulimit -v 4194304; exec \"$0\" \"$@\""]).arg(&program);
    }
    command.args(["--exact", "code_mode::process::another_process", "--nocapture", "--test-threads=1"]);
    command.env("CODE_MODE_SCRIPTS", scripts).output().expect("it starts")
}

fn check(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn no_script_takes_much_memory() {
    let text = check(&process("bombs"));
    assert_eq!(text.matches("DID ").count(), bombs().len());
    if let Some((_, peak)) = text.split_once("PEAK ") {
        let peak: usize = peak.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        assert!(peak < PEAK, "{peak} KiB");
    }
}

/// Neither the text of a script nor a panic of the interpreter reaches the terminal.
#[test]
fn scripts_write_nothing_to_the_terminal() {
    for scripts in ["bombs", "escapes"] {
        let output = process(scripts);
        let said = check(&output);
        assert!(!said.contains("CANARY") && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
