//! Writes a PDF with one page of text, for models that read documents.

use std::fmt::Write as _;

/// Returns the bytes of a PDF with these lines on one page. Characters beyond Latin-1 become question marks, because
/// the standard fonts of PDF do not have them.
pub(crate) fn page(lines: &[String]) -> Vec<u8> {
    let mut text = String::from("BT /F1 11 Tf 14 TL 56 786 Td\n");
    for line in lines {
        let _ = writeln!(text, "({}) Tj T*", escaped(line));
    }
    text.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        &format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ];
    let (mut pdf, mut table) = (String::from("%PDF-1.4\n"), String::from("0000000000 65535 f \n"));
    for (at, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", pdf.len());
        let _ = write!(pdf, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let (start, size) = (pdf.len(), objects.len() + 1);
    let _ = write!(pdf, "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    pdf.into_bytes()
}

fn escaped(line: &str) -> String {
    let mut out = String::new();
    for one in line.chars() {
        match one {
            '(' | ')' | '\\' => out.extend(['\\', one]),
            ' '..='~' => out.push(one),
            '\u{a0}'..='\u{ff}' => {
                let _ = write!(out, "\\{:03o}", u32::from(one));
            }
            _ => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn readers_find_every_object_where_the_table_says() {
        let pdf = String::from_utf8(page(&["São (Paulo)".to_owned(), "Łódź \\".to_owned()])).unwrap_or_default();
        assert!(pdf.contains(r"(S\343o \(Paulo\)) Tj") && pdf.contains(r"(?\363d? \\) Tj"), "{pdf}");
        let number = |text: &str| text.trim().parse::<usize>().unwrap_or(usize::MAX);
        let at = |offset: usize| pdf.get(offset..).unwrap_or_default();
        let start = pdf.rsplit("startxref\n").next().and_then(|rest| rest.lines().next()).map_or(0, number);
        let table = at(start).strip_prefix("xref\n0 6\n").unwrap_or_default();
        let entries: Vec<_> = table.lines().take(6).collect();
        assert_eq!(entries.len(), 6, "{pdf}");
        for (object, entry) in entries.iter().enumerate() {
            // With its line feed an entry has 20 bytes.
            assert_eq!(entry.len(), 19, "{entry}");
            let offset = entry.split(' ').next().map_or(0, number);
            assert!(object == 0 || at(offset).starts_with(&format!("{object} 0 obj\n")), "{object}: {pdf}");
        }
    }
}
