//! A table of ratios as bars.

use std::fmt::Write;
use std::io::Read;

const WIDTH: f64 = 420.0;
const LEFT: f64 = 130.0;
const BAR: f64 = 16.0;

/// Reads `group name ratio` lines on standard input and prints an SVG. Bars are as long as the logarithm of the ratio.
pub fn print(title: &str) {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("a table on standard input");
    let rows: Vec<(&str, &str, f64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?, words.next()?.parse().ok()?))
        })
        .collect();
    print!("{}", svg(title, &rows));
}

fn svg(title: &str, rows: &[(&str, &str, f64)]) -> String {
    let most = rows.iter().map(|row| row.2).fold(1.0, f64::max).max(2.0);
    let mut groups = 0;
    let mut bars = String::new();
    let mut y = 40.0;
    let mut last = "";
    for &(group, name, ratio) in rows {
        if group != last {
            groups += 1;
            y += if groups > 1 { 12.0 } else { 0.0 };
            let _ = writeln!(bars, r#"<text x="4" y="{:.0}" font-weight="bold">{group}</text>"#, y + 12.0);
            y += BAR + 4.0;
            last = group;
        }
        let length = WIDTH * (ratio.max(1.0).ln() / most.ln()).max(0.004);
        let colour = if name == "tool-runtime" { "#2f6f9f" } else { "#b9c4cc" };
        let _ = writeln!(bars, r#"<text x="{:.0}" y="{:.0}" text-anchor="end">{name}</text>"#, LEFT - 6.0, y + 12.0);
        let _ =
            writeln!(bars, r#"<rect x="{LEFT:.0}" y="{y:.0}" width="{length:.1}" height="{BAR:.0}" fill="{colour}"/>"#);
        let _ = writeln!(bars, r#"<text x="{:.0}" y="{:.0}">{ratio}</text>"#, LEFT + length + 6.0, y + 12.0);
        y += BAR + 4.0;
    }
    let (width, height) = (LEFT + WIDTH + 60.0, y + 12.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"4\" y=\"20\" font-size=\"14\">{title}</text>\n{bars}</svg>\n"
    )
}
