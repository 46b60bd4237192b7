//! The tests and the example are in their folders.
