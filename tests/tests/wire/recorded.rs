//! Recorded responses of real providers, whole and in pieces, decode to the results of the official SDKs.

use tests::recorded::check;
use tests::wire::fixtures;

#[test]
fn recorded_responses_decode_as_the_sdks_assemble_them() {
    let (seen, wrong) = check(&fixtures("recorded"));
    assert!(seen >= 100, "{seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
