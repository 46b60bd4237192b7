//! A corpus of escapes: none gets anything, each ends soon, and no text of a failure repeats what the script says.

use std::time::{Duration, Instant};

use crate::{Rig, call, code, run, value};

/// Each of these ends as a failure.
const REFUSED: &[(&str, &str)] = &[
    ("source from text", r#"eval("1")"#),
    ("source from text, as a method", r#""1".eval()"#),
    ("a module", r#"import "std" as s; 1"#),
    ("a module by path", r#"import "/etc/passwd" as s; 1"#),
    ("a module that it exports", "export let a = 1;"),
    ("a name in a module", "std::fs::read(\"/etc/passwd\")"),
    ("a file", r#"open_file("/etc/passwd")"#),
    ("a process", r#"system("id")"#),
    ("the environment", r#"env("HOME")"#),
    ("the clock", "timestamp()"),
    ("a nap", "sleep(1000)"),
    ("randomness", "rand()"),
    ("a loop without end", "loop {}"),
    ("a loop that catches", "loop { try { loop {} } catch { } }"),
    ("a loop over a range without end", "for i in 0..9223372036854775807 { }"),
    ("a loop that waits", "while true { let a = 1; }"),
    ("a loop until", "do { } until false"),
    ("recursion", "fn f() { f() } f()"),
    ("recursion by two", "fn f() { g() } fn g() { f() } f()"),
    ("recursion that catches", "fn f() { try { f() } catch { f() } } f()"),
    ("a string that doubles", r#"let s = "CANARY"; loop { s += s; }"#),
    ("a string that is padded", r#"let s = "a"; s.pad(9000000000000, "CANARY"); s.len()"#),
    ("a string of templates", r#"let s = "a"; loop { s = `${s}${s}${s}${s}`; }"#),
    ("a string that is replaced", r#"let s = "aaaaaaaaaaaaaaaa"; loop { s.replace("a", "aaaaaaaaaaaaaaaa"); }"#),
    ("an array that doubles", "let a = [1]; loop { a += a; }"),
    ("an array that is padded", "let a = []; a.pad(9000000000000, 1); a.len()"),
    ("an array that holds itself", "let a = [1]; loop { a.push(a); }"),
    ("an array of long strings", r#"let s = "x"; for i in 0..16 { s += s; } let a = []; loop { a.push(s); }"#),
    ("an array that nests", "let a = []; loop { a = [a]; }"),
    ("a map that grows", "let m = #{}; let i = 0; loop { m[`k${i}`] = i; i += 1; }"),
    ("a map that holds itself", "let m = #{ a: 1 }; loop { m.b = m; m = #{ a: m }; }"),
    ("a map that nests", "let m = #{}; loop { m = #{ m: m }; }"),
    ("a blob", "blob(9000000000, 1)"),
    ("too many variables", "let a0=0; loop { let a=1; let b=2; { let c=3; } eval }"),
    ("a closure", "let f = |x| x; f.call(1)"),
    ("a closure that holds itself", "let a = []; let f = || a; a.push(f); 1"),
    ("a pointer to a function", r#"let f = Fn("print"); f.call(1)"#),
    ("a pointer that is curried", r#"let f = Fn("print"); loop { f = f.curry(f); }"#),
    ("a pointer to a tool", r#"Fn("notes__list").call()"#),
    ("a call by name", r#"call("notes__hidden")"#),
    ("a large number", "let a = 9223372036854775807; a + 1"),
    ("a large power", "let a = 10; a ** 400"),
    ("the least number without its sign", "let a = -9223372036854775807 - 1; -a"),
    ("the least number divided", "let a = -9223372036854775807 - 1; a / -1"),
    ("the rest of the least number", "let a = -9223372036854775807 - 1; a % -1"),
    ("a division by zero", "1 / 0"),
    ("an index out of bounds", "let a = [1]; a[99999999999]"),
    ("an index from the end", "let a = [1]; a[-9223372036854775807]"),
    ("an array from the end", "let a = [1]; a.extract(-9223372036854775807, 9223372036854775807)[9]"),
    ("a string from the end", r#""abc".sub_string(-9223372036854775807, 9223372036854775807)[99]"#),
    ("a range with a step of zero", "for i in range(0, 10, 0) { loop {} } throw 1"),
    ("a value that is thrown", r#"throw "CANARY""#),
    ("a failure that is forged", r#"throw #{ errorCode: "CANARY", message: "CANARY" }"#),
    ("a variable that does not exist", "CANARY"),
    ("a function that does not exist", "CANARY()"),
    ("a property that does not exist", "let a = 1; a.CANARY"),
    ("what cannot be read", "let CANARY = = \"CANARY"),
    ("a constant that is assigned", "const CANARY = 1; CANARY = 2;"),
    ("the prototype", "let a = #{}; a.__proto__.CANARY = 1; a.constructor(\"CANARY\")"),
    ("this", "this.CANARY"),
    ("the engine", "global::CANARY"),
    ("the code tool", r#"graph__code(#{ script: "1" })"#),
    ("the code tool by name", r#"call_tool("graph__code", #{ script: "CANARY" })"#),
    ("a tool that nobody may see", r#"call_tool("notes__hidden", #{})"#),
    ("a tool that nobody may see, as a function", "notes__hidden()"),
    ("a tool that it was not given", r#"call_tool("notes__delete", #{ number: 1 })"#),
    ("a tool of another name", r#"call_tool("Notes__List", #{})"#),
    ("a name with a line break", r#"call_tool("notes__list\nCANARY", #{})"#),
    ("a name without an end", r#"let s = "n"; for i in 0..16 { s += s; } call_tool(s, #{})"#),
    ("arguments that are no map", r#"call_tool("notes__list", [1])"#),
    ("arguments without JSON", "notes__say(#{ text: 0..1 })"),
    ("arguments that are not known", "notes__list(#{ CANARY: 1 })"),
    ("arguments that are too long", r#"let s = "n"; for i in 0..16 { s += s; } notes__say(#{ text: s })"#),
    ("a function that shadows print", "fn print(x) { 3 } print(1)"),
    ("the end of the process", "exit(0)"),
    ("a range as a result", "0..1"),
    ("a deep value as a result", "let a = []; for i in 0..1000 { a = [a]; } a"),
];

/// Each of these ends well, and gets only what it says.
const HARMLESS: &[(&str, &str, &str)] = &[
    ("a function in place of a tool", "fn notes__list() { 1 } notes__list()", "1"),
    ("a function in place of the way out", "fn call_tool(a, b) { 2 } call_tool(\"notes__hidden\", #{})", "2"),
    (
        "keys with a meaning elsewhere",
        r#"#{ "__proto__": 1, "$ref": 2, "constructor": 3 }"#,
        r##"{"$ref":2,"__proto__":1,"constructor":3}"##,
    ),
    (
        "guesses of names",
        r#"let n = 0; for s in ["admin", "notes__", "mcp__", "graph__", ""] { try { call_tool(s, #{}); } catch { n += 1; } } n"#,
        "5",
    ),
    ("text that looks like JSON", r#""\"},\"calls\":0""#, r#""\"},\"calls\":0""#),
];

/// Sources that are hard to read.
fn sources() -> Vec<(&'static str, String)> {
    let around = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    vec![
        ("parentheses", around("(", "1", ")", 15_000)),
        ("arrays", around("[", "", "]", 15_000)),
        ("maps", around("#{a:", "1", "}", 6_000)),
        ("blocks", around("{", "1", "}", 15_000)),
        ("branches", "if true {} else ".repeat(1_900) + "{}"),
        ("conditions", around("if true {", "1", "}", 3_000)),
        ("loops", around("loop {", "1", "}", 4_000)),
        ("signs", "-".repeat(30_000) + "1"),
        ("negations", "!".repeat(30_000) + "true"),
        ("sums", "1+".repeat(15_000) + "1"),
        ("powers", "1**".repeat(10_000) + "1"),
        ("both", "true&&".repeat(5_000) + "true"),
        ("properties", format!("let a = #{{}}; a{}", ".a".repeat(15_000))),
        ("methods", format!("let a = \"\"; a{}", ".len()".repeat(5_000))),
        ("indices", format!("let a = []; a{}", "[0]".repeat(10_000))),
        ("templates", around("`${", "1", "}`", 6_000)),
        ("comments", "/*".repeat(15_000)),
        ("a text without an end", format!("\"{}", "a".repeat(30_000))),
        ("functions", format!("fn f() {{ fn g() {{{}", "fn h() {".repeat(3_000))),
        ("many functions", (0..1_500).map(|at| format!("fn f{at}() {{}} ")).collect()),
        ("assignments", format!("let a = 1; {}1", "a = ".repeat(8_000))),
        ("cases", around("switch 1 { 1 => ", "1", "}", 1_500)),
        ("catches", around("try {", "1", "} catch {}", 1_800)),
        ("coalescing", "()??".repeat(7_000) + "throw 1"),
        ("a megabyte", "let a = 1; ".repeat(100_000)),
    ]
}

#[tokio::test]
async fn escapes_get_nothing() {
    let mut wrong = Vec::new();
    for (what, script) in REFUSED {
        let begun = Instant::now();
        let (result, rig) = run(script).await;
        let read = format!("{} {:?}", result.to_model(), result.detail());
        let shows = read.contains("CANARY") || read.contains("HIDDEN");
        if result.is_ok() || shows || rig.effects() > 0 || begun.elapsed() > Duration::from_secs(10) {
            wrong.push(format!("{what}: {:?} {read}", begun.elapsed()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn sources_that_are_hard_to_read_are_refused() {
    for (what, script) in sources() {
        let begun = Instant::now();
        let (result, _) = run(&script).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}: {:?}", begun.elapsed());
        assert!(!result.is_ok(), "{what}: {}", result.to_model());
    }
}

#[tokio::test]
async fn what_looks_like_an_escape_is_harmless() {
    for (what, script, expected) in HARMLESS {
        assert_eq!(value(script).await["value"].to_string(), *expected, "{what}");
    }
}

/// The deepest script that is allowed has room on its stack, in this build too.
#[tokio::test]
async fn the_deepest_script_has_room() {
    let inner = format!("{}f(n - 1){}", "(1 + ".repeat(4), ")".repeat(4));
    let script = format!("fn f(n) {{ if n == 0 {{ 0 }} else {{ {inner} }} }} f(20)");
    assert_eq!(value(&script).await["value"], 80);
    let wide = "let a = []; for i in 0..4000 { a = [a]; } a.len()";
    assert_eq!(value(wide).await["value"], 1);
}

/// An escape that failed leaves the tool as it was.
#[tokio::test]
async fn scripts_share_nothing() {
    let rig = Rig::new();
    let run = rig.run("", code());
    for script in ["fn f() { 1 } const A = 1; f()", "f()", "A"] {
        let id = format!("call {script}");
        let arguments = serde_json::json!({ "script": script }).to_string();
        let result = run.exec(tool_runtime::ToolCall::text(id, "graph__code", arguments)).await;
        assert_eq!(result.is_ok(), script.starts_with("fn"), "{script}");
    }
    assert!(!run.exec(call("global::A")).await.is_ok());
}
