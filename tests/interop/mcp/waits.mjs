// A call that waits, for clients without tasks: the official TypeScript SDK over standard input and output, and the client
// 2.4 over HTTP. A person approves at the command line; the client asks again, and once the request is held meanwhile.
// Each mail is sent once.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [toolbox, data, policy] = process.argv.slice(2);
const holding = `${data}.hold.toml`;
writeFileSync(holding, `${policy}\n[mcp]\nhold = "1h"\n`);
writeFileSync(`${data}.toml`, policy);
const shared = (policy) => ["--data", data, "--store", `sqlite:${data}.db`, "--policy", policy];

async function approvals(...words) {
  const { stdout } = await promisify(execFile)(toolbox, [...shared(`${data}.toml`), "--json", "approvals", ...words]);
  return JSON.parse(stdout);
}

/** Approves the call that waits, once one does. */
async function approve(policy) {
  for (;;) {
    const [waiting] = await promisify(execFile)(toolbox, [...shared(policy), "--json", "approvals", "list"]).then(
      ({ stdout }) => JSON.parse(stdout),
      () => [],
    );
    if (waiting) {
      // Its server may not have entered the run yet.
      const approved = promisify(execFile)(toolbox, [...shared(policy), "approvals", "approve", waiting.id, "--as", "grace"]);
      if (await approved.then(() => true, () => false)) return;
    }
  }
}

const sent = () => {
  try {
    return readdirSync(`${data}/outbox/new`).length;
  } catch {
    return 0;
  }
};

let mails = 0;
async function check(client, subject, held) {
  const call = () => client.callTool({ name: "mail__send_email", arguments: { to: ["ada@example.com"], subject, body: "Hello" } });
  if (held) {
    const [done] = await Promise.all([call(), approve(holding)]);
    assert.notEqual(done.isError, true, JSON.stringify(done));
  } else {
    const waits = await call();
    assert.equal(waits.isError, true);
    assert.match(waits.content[0].text, /approval_required.*Make the same call again/);
    assert.match((await call()).content[0].text, /approval_required/);
    assert.equal((await approvals("list")).length, 1, "the same call is one call");
    await approve(`${data}.toml`);
    assert.equal(sent(), mails, "nothing happens before the client asks again");
    const done = await call();
    assert.notEqual(done.isError, true, JSON.stringify(done));
  }
  mails += 1;
  assert.equal(sent(), mails, "once");
  assert.deepEqual(await approvals("list"), []);
  await client.close();
}

for (const [policy, held] of [[`${data}.toml`, false], [holding, true]]) {
  const client = new Client1({ name: "sdk", version: "1" });
  await client.connect(new StdioClientTransport({ command: toolbox, args: [...shared(policy), "mcp", "serve"], stderr: "ignore" }));
  await check(client, `sdk ${held}`, held);

  const server = spawn(toolbox, [...shared(policy), "mcp", "serve", "--http", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
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
    const client = new Client2({ name: "client", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await check(client, `client ${held}`, held);
  } finally {
    server.kill("SIGTERM");
  }
}
console.log("a call that waits: the TypeScript SDK 1.32.2 and client 2.4.0, asked again and held");
