//! Makes what the compiler says comparable: without the paths of this machine, and without the lines of other files.

use std::path::Path;

/// How many of the types that implement a trait an answer lists.
const LISTED: usize = 8;

/// The messages of one case as its `.stderr` file has them.
pub(crate) fn normalized(messages: &[String], package: &Path) -> String {
    let reader = Reader { package: folder(package), workspace: folder(package.parent().unwrap()) };
    let answers: Vec<_> =
        messages.iter().map(|message| reader.message(message)).filter(|text| !text.is_empty()).collect();
    answers.join("\n")
}

fn folder(path: &Path) -> String {
    format!("{}/", path.display())
}

struct Reader {
    package: String,
    workspace: String,
}

impl Reader {
    fn message(&self, message: &str) -> String {
        let mut lines = Vec::new();
        // Inside an excerpt from another file, whose line numbers change when that file does.
        let mut elsewhere = false;
        let mut listed = None;
        for line in message.lines().map(str::trim_end) {
            let start = line.trim_start();
            if is_boilerplate(start) {
                continue;
            }
            if let Some(at) = start.strip_prefix("--> ").or_else(|| start.strip_prefix("::: ")) {
                let place = self.place(at);
                elsewhere = !place.starts_with("ui/");
                let place =
                    if elsewhere { place.trim_end_matches(|c: char| c == ':' || c.is_ascii_digit()) } else { &place };
                lines.push(format!("{}{place}", &line[..line.len() - at.len()]));
                continue;
            }
            elsewhere &= start.starts_with(|first: char| first.is_ascii_digit() || first == '|' || first == '.');
            let line = if elsewhere { without_number(line) } else { line.to_owned() };
            if let Some(line) = shortened(line, &mut listed) {
                lines.push(unversioned(&line).replace(&self.package, "$DIR/").replace(&self.workspace, "$WORKSPACE/"));
            }
        }
        let text = unindented(&lines);
        let text = text.trim_end();
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    }

    /// A path and perhaps its line and column, as every machine has them.
    fn place(&self, at: &str) -> String {
        if let Some(own) = at.strip_prefix(&self.package) {
            return own.to_owned();
        }
        if let Some(own) = at.strip_prefix(&self.workspace) {
            return format!("$WORKSPACE/{own}");
        }
        if let Some((_, of_rust)) = at.split_once("/rustlib/src/rust/library/").or_else(|| at.split_once("/library/")) {
            return format!("$RUST/{of_rust}");
        }
        let registry = at.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
        let Some((krate, file)) = registry.and_then(|(_, rest)| rest.split_once('/')) else { return at.to_owned() };
        // `serde_json-1.0.64` is `serde_json-$VERSION`.
        let name = krate.split_once('.').and_then(|(name, _)| name.rsplit_once('-')).map_or(krate, |(name, _)| name);
        format!("$CARGO/{name}-$VERSION/{file}")
    }
}

/// The name of the module that expansions name changes with every release.
fn unversioned(line: &str) -> String {
    let name = format!("__private{}", env!("CARGO_PKG_VERSION").replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    line.replace(&name, "__private$VERSION")
}

fn is_boilerplate(line: &str) -> bool {
    let starts = [
        "error: aborting due to ",
        "For more information about ",
        "Some errors have detailed explanations:",
        "= note: the full type name has been written to",
        "= note: the full name for the type has been written to",
        "= note: consider using `--verbose` to print the full type name",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

/// `10 | code` with a blank in place of each digit.
fn without_number(line: &str) -> String {
    let digits = line.find(|c: char| c != ' ' && !c.is_ascii_digit()).unwrap_or(line.len());
    format!("{}{}", " ".repeat(digits), &line[digits..])
}

/// Cuts the list of the types that implement a trait: how many there are depends on every dependency's features.
fn shortened(line: String, listed: &mut Option<usize>) -> Option<String> {
    let start = line.trim_start();
    let indent = line.len() - start.len();
    if start.starts_with("= help: the following types implement trait ")
        || start.starts_with("= help: the following other types implement trait ")
    {
        *listed = Some(0);
        return Some(line);
    }
    let Some(count) = listed.as_mut().filter(|_| indent >= 10) else {
        *listed = None;
        return Some(line);
    };
    let more = start.starts_with("and ") && start.ends_with(" others");
    *count += 1;
    match *count {
        _ if more => Some(format!("{}and $N others", &line[..indent])),
        count if count <= LISTED => Some(line),
        _ => None,
    }
}

/// Takes away the indentation that the longest line number of a message asked for: numbers of other files are hidden.
fn unindented(lines: &[String]) -> String {
    let mut text = String::new();
    let mut rest = lines;
    while let Some((first, below)) = rest.split_first() {
        text += first;
        text.push('\n');
        rest = below;
        let next = below.first().map_or("", String::as_str);
        if Kind::of(first, true) != Kind::Heading || !next.trim_start().starts_with("--> ") {
            continue;
        }
        let mut indent = usize::MAX;
        let mut length = 0;
        let mut continued = false;
        for line in below {
            let kind = Kind::of(line, false);
            let deep = line.len() - line.trim_start().len() > 10;
            match kind {
                Kind::Code(own) => indent = indent.min(own),
                Kind::Note => {}
                Kind::Other if deep || (continued && line.starts_with("      ")) => {}
                Kind::Heading | Kind::Other => break,
            }
            continued = kind == Kind::Note || (continued && kind == Kind::Other && line.starts_with("      "));
            length += 1;
        }
        let (block, below) = below.split_at(length);
        for line in block {
            let cut = match (Kind::of(line, false), line.find(' ')) {
                (Kind::Code(_) | Kind::Other, Some(space)) => {
                    format!("{}{}", &line[..space], &line[(space + indent).min(line.len())..])
                }
                _ => line.clone(),
            };
            text += &cut;
            text.push('\n');
        }
        rest = below;
    }
    text
}

/// What a line of a message is.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    /// `error[E0001]: ..`.
    Heading,
    /// An excerpt, with as many spaces as can be taken away.
    Code(usize),
    /// `note: ..` inside a message.
    Note,
    Other,
}

impl Kind {
    fn of(line: &str, first: bool) -> Self {
        let after = line.strip_prefix("error").or_else(|| line.strip_prefix("warning"));
        if after.is_some_and(|rest| rest.starts_with([':', '['])) || (first && line.starts_with("note: ")) {
            return Self::Heading;
        }
        if line.starts_with("note:") || line.starts_with("help:") || line == "..." {
            return Self::Note;
        }
        let spaces = |text: &str| text.len() - text.trim_start_matches(' ').len();
        if let Some(rest) = line.strip_prefix("... ") {
            return Self::Code(spaces(rest));
        }
        let numbered = line.trim_start_matches(' ');
        let digits = numbered.len() - numbered.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let rest = numbered[digits..].trim_start_matches(' ');
        let indent = line.len() - digits - rest.len();
        let starts = |marks: &[&str]| {
            marks
                .iter()
                .any(|mark| rest.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
        };
        let is_code =
            starts(&["|"]) || (digits > 0 && starts(&["~", "+", "-"])) || (digits == 0 && starts(&["-->", ":::", "="]));
        if indent > 0 && is_code { Self::Code(indent - 1) } else { Self::Other }
    }
}
