//! Pages are bounded in bytes, not only in records.

use tool_runtime::ToolInvocationRecord;
use tool_runtime::call::JsonText;
use tool_runtime::store::{RecordFilter, Store, Verification};

use crate::store::tests::new;

#[tokio::test]
async fn a_page_of_large_records_is_short_and_the_next_one_goes_on() {
    let (_folder, store) = new().await;
    let large = JsonText::from(serde_json::value::to_raw_value(&"x".repeat(1 << 20)).unwrap());
    for call in 0..20 {
        let mut record = ToolInvocationRecord::example("run", &call.to_string());
        record.result = Some(large.clone());
        store.append(record.into()).await.unwrap();
    }
    for filter in [RecordFilter::default(), RecordFilter::run("run")] {
        let mut filter = RecordFilter { limit: Some(500), ..filter };
        let mut pages = Vec::new();
        loop {
            let page = store.records(&filter).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = last.position;
            pages.push(page.len());
        }
        assert_eq!(pages, [8, 8, 4], "each has 8 MiB, and the record that reaches over it");
    }
    assert_eq!(store.records(&RecordFilter::default()).await.unwrap().len(), 20, "without a limit they are all there");
    assert_eq!((&store as &dyn Store).anchor(|_| {}).await.unwrap(), 3, "an anchor for each page");
    let checked = Verification::of_store(&store, &[], |_| {}).await.unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!((checked.records, checked.runs, checked.unanchored), (20, 1, 0));
}
