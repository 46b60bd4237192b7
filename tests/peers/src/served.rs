//! A call over MCP: a bare `rmcp` server, and ours with its gate, with the same client over a pipe in one thread.

use std::hint::black_box;

use cpu_time::ThreadTime;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RunningService, ServiceExt};
use tool_runtime::RunOptions;
use tool_runtime::mcp::serve::{McpServer, Peer as Admitted};

use crate::arguments;
use crate::peers::{ours, rmcp as bare};
use crate::times::median;
use crate::tools::Shape;

const ROUNDS: usize = 21;
const CALLS: usize = 200;

pub fn print() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (here, there) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let service = bare::Server.serve(there).await.expect("a handshake");
            drop(service.waiting().await);
        });
        let one = ().serve(here).await.expect("a handshake");
        let (here, there) = tokio::io::duplex(1 << 20);
        let admit = |_: &Admitted<'_>| Some(RunOptions::new().principal("ada"));
        let server = McpServer::builder(ours::runner(), admit).build().expect("a server");
        tokio::spawn(async move {
            let (read, write) = tokio::io::split(there);
            server.stream(read, write).await.expect("a handshake");
        });
        let other = ().serve(here).await.expect("a handshake");
        println!("| | bare rmcp, us a call | ours | ratio | ours on top, us |");
        println!("| --- | ---: | ---: | ---: | ---: |");
        for shape in Shape::ALL {
            row(shape, &one, &other).await;
        }
    });
}

async fn row(shape: Shape, one: &RunningService<RoleClient, ()>, other: &RunningService<RoleClient, ()>) {
    let texts = arguments(shape);
    let (mut bare, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let left = batch(one.peer(), shape.name(), &texts).await;
        let right = batch(other.peer(), ours::name(shape), &texts).await;
        bare.push(left);
        ours.push(right);
        ratios.push(right / left);
    }
    let (bare, ours) = (median(bare) * 1e6, median(ours) * 1e6);
    println!("| {} | {bare:.1} | {ours:.1} | {:.2} | {:.1} |", shape.name(), median(ratios), ours - bare);
}

/// CPU time of a call, client and server together.
async fn batch(peer: &Peer<RoleClient>, name: &'static str, texts: &[String; 2]) -> f64 {
    let start = ThreadTime::now();
    for at in 0..CALLS {
        let arguments = serde_json::from_str(&texts[at % 2]).expect("an object");
        let result = peer.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await;
        assert_ne!(black_box(result.expect("an answer")).is_error, Some(true));
    }
    start.elapsed().as_secs_f64() / CALLS as f64
}
