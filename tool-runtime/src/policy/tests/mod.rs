//! Cases of the policy: reading, deciding, checking.

mod check;
mod decide;
mod read;
