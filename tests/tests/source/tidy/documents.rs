//! Texts for people: their paths exist, they do not name this machine, and their English follows the house rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{read, root};

/// Folders that builds and package managers fill.
const FILLED: [&str; 4] = ["target", "node_modules", "corpus", "artifacts"];

/// Every file and folder of the repository, relative to its root.
fn tree() -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name == ".git" || path.is_dir() && FILLED.contains(&name) && !path.ends_with("tests/src/corpus") {
                continue;
            }
            found.insert(path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/"));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// The prose of a Markdown text, its blocks of code left out.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// The code spans of a line: what is between single backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn is_path(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let named = [".rs", ".md", ".toml", ".sh", ".yml", ".json", ".lock"].iter().any(|end| span.ends_with(end));
    span.chars().all(plain) && !span.starts_with(['/', '.']) && (span.contains('/') || named)
}

/// Whether the path is in the tree: from the root, or as the end of a path, so that `store/clock.rs` is one.
fn leads_somewhere(tree: &BTreeSet<String>, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    tree.contains(path) || tree.iter().any(|known| known.strip_suffix(path).is_some_and(|before| before.ends_with('/')))
}

#[test]
fn paths_in_documents_lead_somewhere() {
    let tree = tree();
    let mut wrong = Vec::new();
    let documents = tree.iter().filter(|path| {
        let own = !path.contains('/')
            || path.starts_with("docs/")
            || path.starts_with(".github/")
            || *path == "tests/README.md";
        own && Path::new(path).extension().is_some_and(|extension| extension == "md")
    });
    for document in documents {
        // Its lines describe earlier states.
        if document == "CHANGELOG.md" {
            continue;
        }
        // These two are about this repository; others name files of their readers' projects as well.
        let of_ours = matches!(document.as_str(), "ARCHITECTURE.md" | "CONTRIBUTING.md");
        let text = read(document);
        for (number, line) in prose(&text) {
            for span in spans(line).filter(|span| is_path(span)) {
                let first = span.split('/').next().unwrap_or_default();
                // The files that a build makes do not exist before it.
                if FILLED.contains(&first) {
                    continue;
                }
                let ours = of_ours || (span.contains('/') && root().join(first).is_dir());
                if ours && !leads_somewhere(&tree, span) {
                    wrong.push(format!("{document}:{number}: `{span}` is not there"));
                }
            }
            for target in links(line) {
                let file = target.split('#').next().unwrap_or_default();
                let beside = root().join(document).parent().map(|folder| folder.join(file)).unwrap_or_default();
                if !file.is_empty() && !target.contains(':') && !exists(&beside) {
                    wrong.push(format!("{document}:{number}: the link `{target}` leads nowhere"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn exists(path: &PathBuf) -> bool {
    fs::metadata(path).is_ok()
}

/// A test program that is missing there is not found, and one that is gone misleads.
#[test]
fn the_test_programs_are_those_of_their_readme() {
    let tree = tree();
    let programs = tree.iter().filter_map(|path| path.strip_prefix("tests/tests/")).filter_map(|path| {
        let name = path.strip_suffix("/main.rs").or_else(|| path.strip_suffix(".rs"))?;
        (!name.contains('/')).then_some(name)
    });
    let text = read("tests/README.md");
    let (_, section) = text.split_once("## Test programs").expect("its section");
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows: Vec<[&str; 2]> = rows.filter_map(|row| Some([row.split('|').nth(1)?, row.split('|').nth(3)?])).collect();
    let listed = rows.iter().flat_map(|[programs, _]| spans(programs));
    assert_eq!(listed.collect::<BTreeSet<_>>(), programs.collect());

    // `wire` has one module for each topic, and its row names none of them.
    for [programs, modules] in rows.iter().filter(|[programs, _]| programs.trim() != "`wire`") {
        let declared =
            spans(programs).map(|name| format!("tests/tests/{name}/main.rs")).filter(|path| tree.contains(path));
        let declared: String = declared.map(read).collect();
        let declared = declared.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        assert_eq!(spans(modules).collect::<BTreeSet<_>>(), declared.collect(), "{programs}");
    }
}

#[test]
fn nothing_names_a_machine() {
    // Spelled apart, so that this file holds none of them.
    let folders = [["/wo", "rk/"], ["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"]].map(|halves| halves.concat());
    let mut wrong = Vec::new();
    for path in tree().iter().filter(|path| !path.contains("fixtures/")) {
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        for (at, line) in text.lines().enumerate() {
            if folders.iter().any(|folder| line.contains(folder.as_str())) {
                wrong.push(format!("{path}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Phrases that a reader stumbles over, with their replacements.
const STUMBLES: &[(&str, &str)] = &[
    ("tells of", "reports, describes"),
    ("comes to", "amounts to, results in"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("besides", "also, in addition to"),
    ("dear", "expensive"),
    ("whoever", "the caller, the reader, .."),
    ("as far as it came", "possibly incomplete"),
    ("by now", "current"),
    ("let loose", "run"),
    ("turns running", "consecutive turns"),
    ("stands in", "is in"),
    ("stands on", "is on"),
    ("stands where", "is where"),
    ("stands behind", "follows"),
    ("what is no", "what is not a"),
    ("that is no", "that is not a"),
    ("text is no", "text is not a"),
    ("is no part of", "is not part of"),
    ("belong into", "belong in"),
    ("of those who", "of the people who, of callers that, .."),
    ("what would be right", "the expected value"),
    ("for ever", "forever"),
    ("anew", "again"),
    ("beside", "next to, attached to"),
];

/// Whether the phrase is in the line, as whole words and not as code.
fn has(line: &str, phrase: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    words.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&words[..at], &words[at + phrase.len()..]);
        !is_word(before.chars().next_back()) && !is_word(after.chars().next())
    })
}

#[test]
fn whole_words_are_distinguished_from_parts() {
    assert!(has("/// It goes on.", "goes on") && has("Goes on", "goes on"));
    assert!(!has("it goes once", "goes on") && !has("`goes on` is code", "goes on") && !has("undear", "dear"));
}

#[test]
fn the_english_is_plain() {
    let mut wrong = Vec::new();
    for path in tree().iter().filter(|path| !path.contains("fixtures/") && !path.contains("tests/ui/")) {
        let lines: Vec<(usize, String)> = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
            Some("md") => prose(&read(path)).map(|(at, line)| (at, line.to_owned())).collect(),
            Some("rs") => {
                let text = read(path);
                let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
                comments.map(|(at, line)| (at + 1, line.to_owned())).collect()
            }
            _ => continue,
        };
        for (number, line) in lines {
            for (phrase, better) in STUMBLES.iter().filter(|(phrase, _)| has(&line, phrase)) {
                wrong.push(format!("{path}:{number}: \"{phrase}\" ({better}): {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
