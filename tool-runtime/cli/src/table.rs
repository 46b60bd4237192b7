//! Prints tables that fit the terminal without cutting text.

use serde::Serialize;

use crate::exit::Failure;
use crate::fold::folded;
use crate::session::Cli;
use crate::terminal::{self, json};

/// The space between two columns.
const GAP: usize = 2;
/// The indentation of the further lines of a row.
const INDENT: usize = 4;

/// Prints rows under a heading. Without a terminal each row is one line. On a narrow terminal, columns that do not fit
/// move to further lines, and long cells are folded.
pub(super) fn print<const N: usize>(heading: [&str; N], rows: &[[String; N]]) {
    let (heading, rows) = fit(heading, rows, terminal::columns());
    heading.iter().for_each(|line| terminal::line(&terminal::bold(line)));
    rows.iter().for_each(|line| terminal::line(line));
}

/// Prints rows as JSON, or as a table with these cells. Prints the note `none` in place of an empty table.
pub(super) fn list<R: Serialize, const N: usize>(
    cli: &Cli<'_>,
    rows: &[R],
    none: &str,
    heading: [&str; N],
    cells: impl Fn(&R) -> [String; N],
) -> Result<(), Failure> {
    if cli.settings.json {
        terminal::line(&json(&rows)?);
    } else if rows.is_empty() {
        terminal::note(none);
    } else {
        print(heading, &rows.iter().map(cells).collect::<Vec<_>>());
    }
    Ok(())
}

/// Prints rows under a heading on stderr.
pub(super) fn messages<const N: usize>(heading: [&str; N], rows: &[[String; N]]) {
    let (heading, rows) = fit(heading, rows, terminal::width());
    heading.iter().chain(&rows).for_each(|line| terminal::message(line));
}

/// Returns the lines of the heading, and the lines of the rows.
fn fit<const N: usize>(heading: [&str; N], rows: &[[String; N]], width: Option<usize>) -> (Vec<String>, Vec<String>) {
    let heading = heading.map(ToOwned::to_owned);
    let all = || std::iter::once(&heading).chain(rows);
    let widths: Vec<_> = (0..N).map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or_default()).collect();
    let groups = groups(&widths, width.unwrap_or(usize::MAX));
    let lines = |row: &[String; N]| -> Vec<String> {
        groups.iter().flat_map(|columns| group_lines(row, columns, &widths, width)).collect()
    };
    (lines(&heading), rows.iter().flat_map(lines).collect())
}

/// Divides the columns into the lines of a row: as many columns as fit in each line, and at least one.
fn groups(widths: &[usize], room: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = 0;
    for (at, width) in widths.iter().enumerate() {
        let needed = if groups.last().is_some_and(Vec::is_empty) { *width } else { used + GAP + width };
        if needed > room && used > 0 {
            groups.push(vec![at]);
            used = INDENT + width;
        } else {
            if let Some(last) = groups.last_mut() {
                last.push(at);
            }
            used = needed;
        }
    }
    groups
}

/// Returns the lines for some columns of a row: usually one, or none if all the cells are empty.
fn group_lines(row: &[String], columns: &[usize], widths: &[usize], width: Option<usize>) -> Vec<String> {
    let indent = if columns.first() == Some(&0) { 0 } else { INDENT };
    let cells: Vec<_> = columns.iter().map(|at| format!("{:1$}", row[*at], widths[*at])).collect();
    let line = cells.join(&" ".repeat(GAP)).trim_end().to_owned();
    if line.is_empty() && indent > 0 {
        return Vec::new();
    }
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
    folded(&line, room).into_iter().map(|line| format!("{}{line}", " ".repeat(indent))).collect()
}

/// Cuts text to at most this many characters; an ellipsis marks a cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('\u{2026}');
    cut
}

#[cfg(test)]
mod tests {
    use super::fit;

    fn lines<const N: usize>(heading: [&str; N], rows: &[[String; N]], width: Option<usize>) -> Vec<String> {
        let (heading, rows) = fit(heading, rows, width);
        [heading, rows].concat()
    }

    #[test]
    fn no_column_is_left_out_and_no_cell_is_cut() {
        let rows = [["tasks__list_tasks".to_owned(), "read_only".to_owned(), "src/tasks.rs:12".to_owned()]];
        let heading = ["NAME", "EFFECT", "SOURCE"];
        let at = |width| lines(heading, &rows, width);
        assert_eq!(at(None)[1], "tasks__list_tasks  read_only  src/tasks.rs:12");
        assert_eq!(at(Some(80)), at(None));
        assert_eq!(
            at(Some(30)),
            ["NAME               EFFECT", "    SOURCE", "tasks__list_tasks  read_only", "    src/tasks.rs:12"]
        );
        assert_eq!(
            at(Some(20)),
            ["NAME", "    EFFECT", "    SOURCE", "tasks__list_tasks", "    read_only", "    src/tasks.rs:12"]
        );
        for width in 20..60 {
            assert!(at(Some(width)).iter().all(|line| line.chars().count() <= width), "{width}");
        }
    }

    #[test]
    fn a_long_cell_is_folded_and_an_empty_line_is_left_out() {
        let what = "Deletes the task of the new colleague";
        let rows = [["c1".to_owned(), what.to_owned()], ["c2".to_owned(), String::new()]];
        let folded = lines(["CALL", "WHAT"], &rows, Some(24));
        assert_eq!(folded, ["CALL", "    WHAT", "c1", "    Deletes the task of", "    the new colleague", "c2"],);
        let word = [["c1".to_owned(), "x".repeat(40)]];
        let text = lines(["CALL", "WHAT"], &word, Some(24)).concat().replace(' ', "");
        assert!(text.ends_with(&"x".repeat(40)), "{text}");
    }
}
