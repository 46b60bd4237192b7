//! How much memory a hostile server can make its client use, measured in a separate process for each scenario.

use std::process::Command;
use std::time::Duration;

use tool_runtime::mcp::source::ToolSource;

use crate::source::{call, run_of, server};

/// The most memory that a client may have used, in KiB.
const MAX_MEMORY_KIB: u64 = 256 * 1024;

/// The variable that makes the test below a client.
const SCENARIO: &str = "MEMORY_SCENARIO";

/// The scenarios with data that is too long, too much or endless, and the calls that are made.
const SCENARIOS: [(&str, &[&str]); 6] = [
    ("well-behaved", &["big", "flood", "refuse"]),
    ("tasks", &["large", "endless"]),
    ("many-tools", &[]),
    ("endless-cursor", &[]),
    ("long-line", &[]),
    ("stderr-flood", &["big"]),
];

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.split_whitespace().next().and_then(|peak| peak.parse().ok()).expect("a number")
}

/// Only runs as the client of [`a_hostile_server_costs_little_memory`].
#[tokio::test(flavor = "multi_thread")]
async fn client() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let tools = SCENARIOS.iter().find(|(name, _)| *name == scenario).expect("a scenario").1;
    // Long enough for the measurement. The test does not check how long the calls take.
    let limited = server("s", &scenario).call_timeout(Duration::from_secs(3));
    let servers = ToolSource::connect([limited]).await.unwrap();
    for tool in tools {
        let name = format!("mcp__s__{tool}");
        let _ = call(&run_of(&servers, &[&name], ""), &name, "{}").await;
    }
    println!("peak {}", peak());
}

#[test]
fn a_hostile_server_costs_little_memory() {
    for (scenario, _) in SCENARIOS {
        let client = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "source::memory::client", "--nocapture", "--test-threads", "1"])
            .env(SCENARIO, scenario)
            .output()
            .expect("a client");
        let said = String::from_utf8_lossy(&client.stdout);
        assert!(client.status.success(), "{scenario}: {said}");
        let peak = said.lines().find_map(|line| line.split("peak ").nth(1)?.parse::<u64>().ok());
        let peak = peak.unwrap_or_else(|| panic!("{scenario}: no peak in {said}"));
        println!("{scenario}: {} MiB", peak / 1024);
        assert!(peak < MAX_MEMORY_KIB, "{scenario}: {peak} KiB");
    }
}
