//! Edits of a catalog, and what a careful reader says of them.
