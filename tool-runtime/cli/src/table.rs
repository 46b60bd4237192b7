//! Tables that fit the terminal.

use crate::terminal;

/// The space between two columns.
const GAP: usize = 2;
/// The minimum width of a cut column.
const NARROWEST: usize = 12;

/// Prints rows under a heading. If they are wider than the terminal, the last columns are omitted, then the others are
/// cut, the first one last. Without a terminal, rows are complete.
pub(super) fn print<const N: usize>(heading: [&str; N], rows: &[[String; N]]) {
    for (at, line) in fit(heading, rows, terminal::width()).into_iter().enumerate() {
        terminal::line(&if at == 0 { terminal::bold(&line) } else { line });
    }
}

fn fit<const N: usize>(heading: [&str; N], rows: &[[String; N]], width: Option<usize>) -> Vec<String> {
    let heading = heading.map(ToOwned::to_owned);
    let all = || std::iter::once(&heading).chain(rows);
    let mut widths: Vec<_> =
        (0..N).map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or_default()).collect();
    if let Some(width) = width {
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while widths.len() > 2 && total(&widths) > width {
            widths.pop();
        }
        // The first column holds the name that a person types next, so it is cut last.
        for at in (0..widths.len()).rev() {
            let over = total(&widths).saturating_sub(width);
            widths[at] = widths[at].saturating_sub(over).max(NARROWEST.min(widths[at]));
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{:width$}", cut(cell, *width)));
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    all().map(line).collect()
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

    #[test]
    fn columns_are_left_out_before_names_are_cut() {
        let rows = [["tasks__list_tasks".to_owned(), "read_only".to_owned(), "src/tasks.rs:12".to_owned()]];
        let heading = ["NAME", "EFFECT", "SOURCE"];
        let lines = |width| fit(heading, &rows, width);
        assert_eq!(lines(None)[1], "tasks__list_tasks  read_only  src/tasks.rs:12");
        assert_eq!(lines(Some(80)), lines(None));
        assert_eq!(lines(Some(30))[1], "tasks__list_tasks  read_only");
        let long = [["tasks__list_tasks".to_owned(), "external_side_effect".to_owned()]];
        assert_eq!(fit(["NAME", "EFFECT"], &long, Some(34))[1], "tasks__list_tasks  external_side_\u{2026}");
        assert_eq!(lines(Some(24))[1], "tasks__list_\u{2026}  read_only");
        assert!(lines(Some(24)).iter().all(|line| line.chars().count() <= 24));
    }
}
