// The official package for tasks, with all that it checks, as a client of the toolbox: a call waits for an approval, which
// is given at the command line; another one is cancelled.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { resultFromTaskOutcome, withTasks } from "@modelcontextprotocol/ext-tasks/client";

const [toolbox, data] = process.argv.slice(2);
const shared = ["--data", data, "--store", `sqlite:${data}.db`];
const revision = "2026-07-28";

async function approvals(...words) {
  const { stdout } = await promisify(execFile)(toolbox, [...shared, "--json", "approvals", ...words]);
  return JSON.parse(stdout);
}

/** Sends one request and returns its answer. */
function port(url) {
  let id = 0;
  return {
    endpointId: "toolbox",
    taskCapabilities: { generation: "v2", capabilities: {} },
    invalidated: false,
    onServerRequest: () => () => {},
    onNotification: () => () => {},
    onInvalidated: () => () => {},
    async dispatch({ method, params }) {
      const meta = {
        ...params._meta,
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": { name: "ext-tasks", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
      };
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": revision,
          "mcp-method": method,
          "mcp-name": params.name ?? params.taskId,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params: { ...params, _meta: meta } }),
      });
      const text = await response.text();
      const lines = text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => line.slice(6));
      const { result, error } = JSON.parse(lines.at(-1) ?? text);
      return error === undefined ? { kind: "result", result } : { kind: "error", error };
    },
  };
}

const server = spawn(toolbox, [...shared, "mcp", "serve", "--http", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
try {
  const url = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      const found = /listening on (\S+)/.exec(String(chunk));
      if (found) resolve(found[1]);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", () => reject(new Error("the toolbox did not start")));
  });
  const session = withTasks(port(url));
  const mail = { to: ["ada@example.com"], subject: "Hello", body: "Canary" };
  const sent = await session.callTool("mail__send_email", mail);
  assert.equal(sent.kind, "task");
  const [waiting] = await approvals("list");
  assert.equal(waiting.tool, "mail__send_email");
  const [{ outcome }, told] = await Promise.all([
    sent.settle(),
    approvals("approve", waiting.id, "--as", "grace", "--wait", "20s"),
  ]);
  assert.equal(told.outcome, "ok");
  assert.equal(resultFromTaskOutcome(outcome).isError ?? false, false);

  const left = await session.callTool("mail__send_email", { ...mail, subject: "Never" });
  await left.cancel();
  assert.equal((await left.settle()).outcome.status, "cancelled");
  assert.deepEqual(await approvals("list"), []);
  const time = await session.callTool("core__get_current_time", {});
  assert.equal(time.kind, "immediate");
  await session.close();
  console.log("the official package for tasks 0.2.2: an approval, a cancellation, a call that does not wait");
} finally {
  server.kill("SIGTERM");
}
