//! office-tools
