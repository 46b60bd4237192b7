//! Tests that the standard variables are enough to configure the export over OTLP (feature `otlp`).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use crate::rig::Rig;

/// A request as a collector gets it: its line, its headers in lower case, its body.
struct Export {
    head: String,
    body: Vec<u8>,
}

impl Export {
    fn says(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

/// A collector that accepts everything.
fn collector() -> (String, Receiver<Export>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, exports) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() <= 2 {
                    break;
                }
                head += &line.to_lowercase();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            // Recorded before the response, because the program may end as soon as it has all responses.
            if seen.send(Export { head, body }).is_err() {
                return;
            }
            let _ = write!(stream, "HTTP/1.1 200 ..\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        }
    });
    (url, exports)
}

/// Returns the requests that the collector gets for one call.
fn exported(variables: &[(&str, &str)], endpoint: (&str, &str)) -> Vec<Export> {
    let (url, exports) = collector();
    let mut rig = Rig::new();
    rig.set(endpoint.0, format!("{url}{}", endpoint.1));
    for (name, value) in variables {
        rig.set(name, *value);
    }
    let ended = rig.run(&["call", "core__get_current_time", "{}"]).code(0);
    // With an endpoint for one kind only, the export of the other kind finds no collector and may fail.
    assert!(!ended.stderr.contains("could not be exported") || !endpoint.1.is_empty(), "{ended:?}");
    exports.try_iter().collect()
}

#[test]
fn the_standard_variables_suffice() {
    let variables = [
        ("OTEL_SERVICE_NAME", "front-desk"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of-the-collector"),
    ];
    let all = exported(&variables, ("OTEL_EXPORTER_OTLP_ENDPOINT", ""));
    for path in ["post /v1/traces", "post /v1/metrics"] {
        let export = all.iter().find(|export| export.head.starts_with(path)).unwrap_or_else(|| panic!("{path}"));
        assert!(export.head.contains("x-key: of-the-collector"), "{}", export.head);
        assert!(export.says("front-desk") && export.says("deployment.environment.name") && export.says("trial"));
    }
    assert!(all.iter().any(|export| export.says("execute_tool core__get_current_time")));
    assert!(all.iter().any(|export| export.says("gen_ai.execute_tool.duration")));
    // One kind can have its own endpoint.
    let all = exported(&[], ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/only/traces"));
    assert!(all.iter().any(|export| export.head.starts_with("post /only/traces") && export.says("toolbox")));
    let all = exported(&[], ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/only/metrics"));
    assert!(all.iter().any(|export| export.head.starts_with("post /only/metrics")));
}

#[test]
fn the_help_names_the_variables() {
    let help = Rig::new().run(&["--help"]).code(0).stdout;
    for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"] {
        assert!(help.contains(name), "{name}: {help}");
    }
}
