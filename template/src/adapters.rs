//! The adapter that the tools use. Here it is a text file; in your project it may be a database or a service.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::shelf::{Book, ShelfReader, ShelfWriter};

/// A shelf in a file with one book per line: its key, a tab, its title.
#[derive(Debug)]
pub struct FileShelf {
    file: PathBuf,
    writing: Mutex<()>,
}

impl FileShelf {
    /// Opens the shelf in a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            file: folder.join("shelf.txt"),
            writing: Mutex::new(()),
        })
    }
}

impl ShelfReader for FileShelf {
    fn books(&self) -> io::Result<Vec<Book>> {
        let text = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        Ok((1..)
            .zip(lines)
            .map(|(number, (key, title))| Book {
                number,
                title: title.into(),
                key: key.into(),
            })
            .collect())
    }
}

impl ShelfWriter for FileShelf {
    fn add(&self, key: &str, title: &str) -> io::Result<Book> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let books = self.books()?;
        if let Some(book) = books.iter().find(|book| book.key == key) {
            return Ok(book.clone());
        }
        let title = title.replace(['\n', '\r'], " ");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)?;
        writeln!(file, "{key}\t{title}")?;
        Ok(Book {
            number: books.len() as u64 + 1,
            title,
            key: key.into(),
        })
    }
}
