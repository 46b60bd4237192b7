//! Scripts that try to escape the sandbox: none reaches anything, each ends soon, and no failure repeats text of its
//! script.

use tool_runtime::Outcome;

use crate::code_mode::{Rig, code, run, value};

/// Each of these ends as a failure.
pub(crate) const REFUSED: &[(&str, &str)] = &[
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
    ("a function", "fn f() { 1 } f()"),
    ("a private function", "private fn f() { 1 } f()"),
    ("a function in place of a tool", "fn notes__list() { 1 } notes__list()"),
    ("a function in place of the way out", "fn call_tool(a, b) { 2 } call_tool(\"notes__hidden\", #{})"),
    ("a name of a function as a value", "let f = notes__list; f"),
    ("a word of the language in other letters", "ＦＮ f() { 1 }"),
    ("a closure", "let f = |x| x; f.call(1)"),
    ("a closure in an array", "[1, 2].map(|x| x)"),
    ("a closure that captures", "let secret = 1; let f = || secret; f.call()"),
    ("an order that is none", "let a = []; for i in 0..500 { a.push(i % 7 - 3); } a.sort(\"min\"); a"),
    (
        "an order that calls tools",
        r#"let a = ["notes__delete", #{ number: 1 }, "notes__list"]; a.sort("call_tool"); a"#,
    ),
    ("a tool that nobody may see, by an array", r#"[#{}].map("notes__hidden")"#),
    ("source from text, by an array", r#"["1"].map("eval")"#),
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
    ("a product that is too large", "let a = 4611686018427387904; a * 2"),
    ("a sum that grows too large", "let a = 9223372036854775807; a += 1; a"),
    ("a difference that is too small", "let a = -9223372036854775807; a -= 9; a"),
    ("the size of the least number", "abs(-9223372036854775807 - 1)"),
    ("a number that is written too large", "9223372036854775808"),
    ("a decimal that is no integer", "to_int(1.0e300)"),
    ("a text in a base that does not exist", r#"parse_int("1", 99)"#),
    ("a text that is no number", r#"parse_int("CANARY")"#),
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
    ("a tool in capitals", r#"call_tool("NOTES__LIST", #{})"#),
    ("a tool with a space", r#"call_tool(" notes__list", #{})"#),
    ("a tool with a letter that looks alike", r#"call_tool("nоtes__list", #{})"#),
    ("a tool with a character that is not shown", r#"call_tool("notes__list\u200b", #{})"#),
    ("a tool with a zero", r#"call_tool("notes__list\x00", #{})"#),
    ("a tool of the client", r#"call_tool("notes__ask", #{})"#),
    ("a tool of the client, as a function", "notes__ask()"),
    ("the search for tools", r#"call_tool("tools__search", #{ query: "CANARY" })"#),
    ("the way out under another case", r#"Call_Tool("notes__list", #{})"#),
    ("a name with a line break", r#"call_tool("notes__list\nCANARY", #{})"#),
    ("a name without an end", r#"let s = "n"; for i in 0..16 { s += s; } call_tool(s, #{})"#),
    ("arguments that are no map", r#"call_tool("notes__list", [1])"#),
    ("arguments without JSON", "notes__say(#{ text: 0..1 })"),
    ("arguments that are not known", "notes__list(#{ CANARY: 1 })"),
    ("arguments that are too long", r#"let s = "n"; for i in 0..16 { s += s; } notes__say(#{ text: s })"#),
    ("the end of the process", "exit(0)"),
    ("a range as a result", "0..1"),
    ("a deep value as a result", "let a = []; for i in 0..1000 { a = [a]; } a"),
];

/// Each of these ends well, and returns only the given value.
const HARMLESS: &[(&str, &str, &str)] = &[
    ("a variable in place of a tool", "let notes__list = 1; notes__list + notes__list().len()", "3"),
    ("a variable in place of the way out", "let call_tool = 1; call_tool + call_tool(\"notes__list\", #{}).len()", "3"),
    ("a tool by an array", r#"[#{ text: "a" }, #{ text: "b" }].map("notes__say")"#, r#"["a","b"]"#),
    ("marks that are not shown", "\"\u{202e}a\u{200b}\u{feff}\".len()", "4"),
    (
        "letters of several bytes",
        r#"let s = "añ🦀e\u0301"; `${s[1]}${s[2]}${s.sub_string(2, 1)}${s.len()}`"#,
        r#""ñ🦀🦀5""#,
    ),
    ("numbers in order", "let a = [3, 1, 2]; a.sort(); a", "[1,2,3]"),
    ("a text that is replaced", r#"let s = "a-b-c"; s.replace("-", "+"); s.replace('c', "d"); s"#, r#""a+b+d""#),
    (
        "keys with a meaning elsewhere",
        r#"#{ "__proto__": 1, "$ref": 2, "constructor": 3 }"#,
        r#"{"$ref":2,"__proto__":1,"constructor":3}"#,
    ),
    (
        "guesses of names",
        r#"let n = 0; for s in ["admin", "notes__", "mcp__", "graph__", ""] { try { call_tool(s, #{}); } catch { n += 1; } } n"#,
        "5",
    ),
    ("text that looks like JSON", r#""\"},\"calls\":0""#, r#""\"},\"calls\":0""#),
];

/// Sources that are hard to read.
pub(crate) fn sources() -> Vec<(&'static str, String)> {
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
        ("assignments", format!("let a = 1; {}1", "a = ".repeat(8_000))),
        ("cases", around("switch 1 { 1 => ", "1", "}", 1_500)),
        ("catches", around("try {", "1", "} catch {}", 1_800)),
        ("variables", (0..100).map(|at| format!("let a{at} = 1; ")).collect::<Vec<_>>().concat()),
        ("constants", (0..100).map(|at| format!("const A{at} = 1; ")).collect::<Vec<_>>().concat()),
        ("coalescing", "()??".repeat(7_000) + "throw 1"),
        ("letters of several bytes", "🦀".repeat(30_000)),
        ("a byte order mark", "\u{feff}".repeat(30_000)),
        ("a megabyte", "let a = 1; ".repeat(100_000)),
        ("ten megabytes", "let a = 1; ".repeat(1_000_000)),
    ]
}

#[tokio::test]
async fn escapes_get_nothing() {
    let mut wrong = Vec::new();
    for (what, script) in REFUSED {
        let (result, rig) = run(script).await;
        let read = format!("{} {:?}", result.to_model(), result.detail());
        let shows = read.contains("CANARY") || read.contains("HIDDEN");
        // A limit on a count ends it, not the time limit, because times differ between machines.
        if result.is_ok() || shows || rig.effects() > 0 || result.outcome() == Outcome::Timeout {
            wrong.push(format!("{what}: {read}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn sources_that_are_hard_to_read_are_refused() {
    for (what, script) in sources() {
        let (result, _) = run(&script).await;
        assert!(!result.is_ok() && result.outcome() != Outcome::Timeout, "{what}: {}", result.to_model());
    }
}

#[tokio::test]
async fn what_looks_like_an_escape_is_harmless() {
    for (what, script, expected) in HARMLESS {
        assert_eq!(value(script).await["value"].to_string(), *expected, "{what}");
    }
}

/// The deepest script that is allowed fits on its stack, in this build too, and so does the deepest value.
#[tokio::test]
async fn the_deepest_script_has_room() {
    let nested = |depth: usize| format!("{}1{}", "(1 + ".repeat(depth), ")".repeat(depth));
    let deepest = deepest(nested).await;
    assert!(deepest >= 20, "{deepest}");
    let blocks = |depth: usize| format!("{}1{}", "if true { ".repeat(depth), " }".repeat(depth));
    let deepest = self::deepest(blocks).await;
    assert!(deepest >= 12, "{deepest}");
    let deep = "let a = []; for i in 0..60 { a = [a]; } let b = a; print(a); `${a == b} ${a.len()}`";
    assert_eq!(value(deep).await["value"], "true 1");
    let (result, _) = run("let a = []; for i in 0..4000 { a = [a]; } a.len()").await;
    assert!(result.to_model().contains("became too large"), "{}", result.to_model());
}

/// Returns the deepest permitted nesting of a script. One level more is a failure that names the limit.
async fn deepest(script: impl Fn(usize) -> String) -> usize {
    for depth in 1..100 {
        let (result, _) = run(&script(depth)).await;
        if !result.is_ok() {
            assert!(result.to_model().contains("nested too deeply"), "{depth}: {}", result.to_model());
            return depth - 1;
        }
    }
    panic!("no limit");
}

/// An escape that failed leaves the tool as it was.
#[tokio::test]
async fn scripts_share_nothing() {
    let rig = Rig::new();
    let run = rig.run("", code());
    for script in ["const A = 1; A", "A", "global::A"] {
        let id = format!("call {script}");
        let arguments = serde_json::json!({ "script": script }).to_string();
        let result = run.exec(tool_runtime::ToolCall::text(id, "graph__code", arguments)).await;
        assert_eq!(result.is_ok(), script.starts_with("const"), "{script}");
    }
}
