//! Cases of the built-in repairers.
