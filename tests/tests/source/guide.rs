//! The guide and the README are true: chapters exist, quotations match their files, the policy names every key, and
//! no block hides lines that a forge would show. No paragraph is long.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use office_tools as _;
use serde_json::Value;
use tool_runtime::agent::{Agent, Graph};
use tool_runtime::testing::ScriptedModel;
use tool_runtime::{Outcome, ToolCatalog, ToolPolicy, ToolRunner};

use crate::{read, root};

/// The files of the guide in the order of its table of contents.
fn chapters() -> Vec<String> {
    let summary = read("docs/src/SUMMARY.md");
    let links = summary.lines().filter_map(|line| line.strip_suffix(')')?.split_once("]("));
    links.map(|(_, file)| format!("docs/src/{file}")).collect()
}

/// Documents whose Rust blocks are compiled.
fn documents() -> Vec<String> {
    let mut all = chapters();
    all.push("README.md".to_owned());
    all
}

/// The blocks of a document: the words after the fence, and the text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((info.to_owned(), body.join("\n") + "\n"));
        }
    }
    blocks
}

#[test]
fn every_chapter_is_listed_and_compiled() {
    let listed = chapters();
    assert!(listed.len() > 5, "{listed:?}");
    let compiled = read("tests/src/lib.rs");
    for entry in fs::read_dir(root().join("docs/src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Pictures are next to the chapters that show them.
        if name != "SUMMARY.md" && Path::new(&name).extension().is_none_or(|extension| extension != "svg") {
            assert!(listed.contains(&format!("docs/src/{name}")), "{name} is not in SUMMARY.md");
            assert!(compiled.contains(&format!("\"{name}\"")), "{name} is not compiled by tests/src/lib.rs");
        }
    }
}

/// Rust blocks are programs (`rust`), which rustdoc compiles, or quotations (`rs`), which begin with the path of their
/// file.
#[test]
fn rust_blocks_are_programs_or_quotations() {
    let mut quotations = 0;
    for document in documents() {
        for (info, body) in blocks(&read(&document)) {
            match info.as_str() {
                "rust" | "rust,no_run" => {
                    assert!(body.contains("fn "), "{document}: a block that is no program:\n{body}");
                }
                "rs" => {
                    let (path, quoted) = body.split_once('\n').unwrap();
                    let path = path.strip_prefix("// ").unwrap_or_else(|| panic!("{document}: no path:\n{body}"));
                    let file = read(path);
                    for piece in quoted.split("\n// ..\n") {
                        assert!(
                            file.contains(piece.trim_end()),
                            "{document} quotes what {path} does not say:\n{piece}"
                        );
                    }
                    quotations += 1;
                }
                other => assert!(!other.starts_with('r'), "{document}: unexpected block `{other}`"),
            }
        }
    }
    assert!(quotations > 3, "only {quotations} quotations were found");
}

/// A forge shows the lines that rustdoc hides.
#[test]
fn no_block_hides_lines() {
    for document in documents() {
        for (info, body) in blocks(&read(&document)) {
            if info.starts_with('r') {
                let hidden = body.lines().find(|line| *line == "#" || line.starts_with("# "));
                assert_eq!(hidden, None, "{document}");
            }
        }
    }
}

#[test]
fn links_lead_to_files() {
    for document in documents() {
        let folder = Path::new(&document).parent().unwrap().to_owned();
        for target in read(&document).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !target.starts_with("https://") {
                let path = root().join(&folder).join(target.split('#').next().unwrap());
                assert!(path.exists(), "{document} links to {target}");
            }
        }
    }
}

/// The maximum number of words in a paragraph or in an item of a list.
const MOST_WORDS: usize = 110;

/// Whether the line begins an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || number.len() < line.len() && number.starts_with(". ")
}

/// The paragraphs and items of lists, outside of code, tables and headings: the number of the first line, and the
/// words.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || line.is_empty() || line.starts_with(['|', '#', '<']) {
            is_open = false;
            continue;
        }
        let words = line.split_whitespace().count();
        match found.last_mut() {
            Some((_, sum)) if is_open && !is_item(line) => *sum += words,
            _ => found.push((at + 1, words)),
        }
        is_open = true;
    }
    found
}

#[test]
fn paragraphs_are_short() {
    assert_eq!(
        paragraphs("a b\nc\n\n- d\n- e f\n  g\n| h |\n```sh\ni j\n```\n2. k"),
        [(1, 3), (4, 2), (5, 4), (11, 2)]
    );
    let mut long = Vec::new();
    for document in documents().into_iter().chain(["ARCHITECTURE.md".to_owned()]) {
        let found = paragraphs(&read(&document)).into_iter().filter(|(_, words)| *words > MOST_WORDS);
        long.extend(
            found.map(|(line, words)| format!("{document}:{line}: {words} words; split it, or make it a table")),
        );
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The words of a list in a source: `const KEYS: [&str; 2] = ["a", "b"];`.
fn listed(path: &str, name: &str) -> Vec<String> {
    let text = read(path);
    let (_, after) = text.split_once(&format!("const {name}: [&str; ")).unwrap_or_else(|| panic!("{path}: {name}"));
    let (_, words) = after.split_once('[').unwrap();
    let (words, _) = words.split_once(']').unwrap();
    words.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The rows of the table below a heading, cell by cell.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with("| ")).take_while(|line| line.starts_with("| "));
    lines.skip(2).map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The tables of keys list what the macros parse, in its order, and the chapter behind each key mentions it.
#[test]
fn every_key_of_the_attributes_is_in_the_table() {
    let page = read("docs/src/attributes.md");
    let sources = [
        ("## `#[tool(..)]`", "tool-macros/src/attr.rs", "KEYS"),
        ("## `#[capability(..)]`", "tool-macros/src/attr/capability.rs", "KEYS"),
    ];
    for (heading, path, name) in sources {
        let rows = rows(&page, heading);
        let mut keys: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
        assert!(rows.iter().all(|row| row.len() == 5 && row.iter().all(|cell| !cell.is_empty())), "{heading}");
        let mut parsed = listed(path, name);
        keys.sort();
        parsed.sort();
        assert_eq!(keys, parsed, "{heading}");
        for row in &rows {
            let key = row[0].trim_matches('`');
            let (_, target) = row[4].split_once("](").expect("a link");
            if let Some((chapter, _)) = target.split_once(".md") {
                let chapter = read(format!("docs/src/{chapter}.md"));
                assert!(chapter.contains(key), "{key}: {target} does not mention it");
            }
        }
    }
    // The documentation of the attribute has the same keys; a row may hold two.
    let reference = read("tool-runtime/src/attributes.rs").replace("\n/// ", "\n");
    let reference = reference.rsplit_once("/// Makes a function").map_or(&*reference, |(_, tool)| tool);
    let cells = rows(reference, "# Keys");
    let words = cells.iter().flat_map(|row| row[0].split('`').skip(1).step_by(2));
    let mut documented: Vec<_> = words.map(str::to_owned).collect();
    let mut parsed = listed("tool-macros/src/attr.rs", "KEYS");
    documented.sort();
    parsed.sort();
    assert_eq!(documented, parsed);
    // Attributes of arguments.
    let rows = rows(&page, "## Arguments");
    let first: Vec<_> = rows.iter().map(|row| row[0].as_str()).collect();
    for key in listed("tool-macros/src/attr/argument.rs", "ARG_KEYS") {
        assert!(first.contains(&format!("`#[arg({key})]`").as_str()), "{key}");
    }
    for (name, at) in [("SERDE_KEYS", "`#[serde(..)]`"), ("SCHEMARS_KEYS", "`#[schemars(..)]`")] {
        let row = rows.iter().find(|row| row[0] == at).expect("a row");
        for key in listed("tool-macros/src/attr/argument.rs", name) {
            assert!(row[1].contains(&format!("`{key}`")), "{at} {key}");
        }
    }
}

fn policy_text() -> String {
    let blocks = blocks(&read("docs/src/policy.md"));
    blocks.into_iter().find(|(info, _)| info == "toml").expect("the policy chapter has a policy").1
}

#[test]
fn the_whole_policy_fits_a_catalog() {
    let policy = ToolPolicy::from_toml(&policy_text()).unwrap();
    let agent = Agent::new(ScriptedModel::new([]));
    let graph = Graph::new("researcher", "1", agent).description("Searches.").tools(["docs__search"]);
    let catalog = ToolCatalog::builder().crates(["office_tools"]).collect().dynamic(graph).build().unwrap();
    // Problems of the policy come first; the remaining error is that this test binds no adapters.
    let error = ToolRunner::builder(catalog, policy).approvals(true).build().unwrap_err();
    assert_eq!(error.code(), "capability_unbound", "{error}");
}

/// The policy of the guide sets every key of the policy's format.
#[test]
fn the_whole_policy_names_every_key() {
    let text = policy_text();
    let defaults = serde_json::to_value(ToolPolicy::deny_all()).unwrap();
    for key in defaults.as_object().unwrap().keys() {
        let named = [format!("{key} = "), format!("[{key}"), format!("[[{key}.")];
        assert!(named.iter().any(|written| text.lines().any(|line| line.starts_with(written.as_str()))), "{key}");
    }
}

/// The outcomes that the picture of the pipeline has at each stage.
fn drawn() -> Vec<(String, BTreeSet<String>)> {
    let mut stages: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in read("docs/src/pipeline.svg").lines() {
        if line.starts_with("<text class=\"name\"") {
            let (_, name) = line.split_once('>').unwrap();
            stages.push((name.replace("</text>", ""), BTreeSet::new()));
        } else if let Some((_, codes)) = stages.last_mut().filter(|_| !line.contains("class=\"small\"")) {
            codes.extend(codes_in(line));
        }
    }
    stages
}

fn codes_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    words.filter(|word| Outcome::ALL.iter().any(|outcome| outcome.code() == *word)).map(str::to_owned).collect()
}

/// The picture of the pipeline and the table below it have the same outcomes at each stage, and name every outcome.
#[test]
fn the_pipeline_names_every_outcome() {
    let text = read("docs/src/ten-types.md");
    let (mut drawn, mut named) = (drawn(), BTreeSet::new());
    for (_, codes) in &drawn {
        named.extend(codes.clone());
    }
    assert_eq!(named.len(), Outcome::ALL.len(), "{named:?}");
    for (stage, codes) in &mut drawn {
        // A refused decision does not end the call: the text below the table explains it.
        if stage == "approval" {
            assert!(codes.remove("approval_mismatch") && text.contains("is refused (`approval_mismatch`)"));
        }
    }
    let rows = rows(&text, "## The pipeline");
    let mut listed: Vec<_> = rows.iter().map(|row| (row[0].clone(), codes_in(&row[2]))).collect();
    // The picture says "any outcome above".
    for stages in [&mut drawn, &mut listed] {
        assert_eq!(stages.pop().map(|(stage, _)| stage).as_deref(), Some("finish"));
    }
    assert_eq!(drawn, listed);
}

/// The guide explains every outcome, in the order of their declaration, and no other.
#[test]
fn every_outcome_is_explained() {
    let text = read("docs/src/operating.md");
    let (_, section) = text.split_once("\n## Outcomes\n").expect("the chapter has them");
    let (section, _) = section.split_once("\n## ").expect("another section follows");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")).skip(2);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let codes: Vec<_> = rows.iter().map(|row| row[0].trim_matches(['*', '`'])).collect();
    assert_eq!(codes, Outcome::ALL.iter().map(|outcome| outcome.code()).collect::<Vec<_>>());
    assert!(rows.iter().all(|row| row[1].len() > 20), "{rows:?}");
    // Every outcome that always alerts operators has an action in its row.
    let alerts = rows.iter().filter(|row| row[0].starts_with("**"));
    assert!(alerts.clone().count() > 5 && alerts.clone().all(|row| !row[2].is_empty()), "{rows:?}");
}

/// The kinds of a part's reports with their numbers, in order. Reports of other processes than `process` are left out.
fn kinds(part: &Value, process: Option<&str>) -> String {
    let mut runs: Vec<(&str, u64)> = Vec::new();
    for report in part["reports"].as_array().expect("a list") {
        let (kind, count) = (report["kind"].as_str().expect("a kind"), report["count"].as_u64().expect("a count"));
        match runs.last_mut() {
            _ if process.is_some_and(|process| report["process"] != process) => {}
            Some((last, sum)) if *last == kind => *sum += count,
            _ => runs.push((kind, count)),
        }
    }
    let texts: Vec<_> = runs.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}

/// The table of the comparison of crashes is that of its result.
#[test]
fn crashes_are_as_measured() {
    let result: Value = serde_json::from_str(&read("tests/peers/crash/result.json")).unwrap();
    let page = read("docs/src/crashes.md");
    let (_, table) = page.split_once("<!-- table -->\n").unwrap();
    let (table, _) = table.split_once("\n<!-- end of table -->").unwrap();
    let rows = result["rows"].as_array().unwrap().iter().map(|row| {
        let name = row["name"].as_str().unwrap();
        if let Some(missing) = row["missing"].as_str() {
            return format!("| {name} | not installed: {missing} |  |  |  |  |  |");
        }
        let counted = ["lost", "killed"].map(|part| {
            let part = &row[part];
            format!("{} | {}", part["effects"], kinds(part, None))
        });
        let decided = ["again", "at_once"].map(|part| {
            let part = &row[part];
            format!("{} ({})", part["effects"], kinds(part, Some("second")))
        });
        format!("| {name} | {} | {} |", counted.join(" | "), decided.join(" | "))
    });
    assert_eq!(table.lines().skip(2).map(str::to_owned).collect::<Vec<_>>(), rows.collect::<Vec<_>>());
    assert!(page.contains(&format!("The tables were generated on {}.", result["date"].as_str().unwrap())));
    for row in result["rows"].as_array().unwrap() {
        for (package, version) in row["versions"].as_object().unwrap() {
            assert!(page.contains(&format!("{package} {}", version.as_str().unwrap())), "{package}");
        }
    }
}
