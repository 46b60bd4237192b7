// A call that waits, for clients without tasks: the official TypeScript SDK over standard input and output, and the client
// 2.4 over HTTP in both eras of the protocol. A person approves or denies it in another process, after the client was told that
// the call waits, while its request is held, and after the client's own timeout; or the client's user decides in the client.
// Each mail is sent once or not at all.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as Client2, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [toolbox, served, data, policy] = process.argv.slice(2);
const asked = `${data}.toml`;
const holding = `${data}.hold.toml`;
writeFileSync(asked, policy);
writeFileSync(holding, `${policy}\n[mcp]\nhold = "1h"\n`);
const shared = (policy) => ["--data", data, "--store", `sqlite:${data}.db`, "--policy", policy];
const run = promisify(execFile);
const LIMIT = 2000;

/** The calls that wait. A store that does not exist yet has none. */
const waiting = () =>
  run(toolbox, [...shared(asked), "--json", "approvals", "list"]).then(({ stdout }) => JSON.parse(stdout), () => []);

/** Decides on the call that waits, once one does and its server has entered its run. */
async function decide(policy, word) {
  for (;;) {
    for (const { id } of await waiting()) {
      const decided = run(toolbox, [...shared(policy), "approvals", word, id, "--as", "grace"]);
      if (await decided.then(() => true, () => false)) return;
    }
  }
}

const sent = () => (existsSync(`${data}/outbox/new`) ? readdirSync(`${data}/outbox/new`).length : 0);
const isTimeout = (error) => /timed out/i.test(error.message);

/** Starts a server on loopback, and ends it by its id. */
async function serving(command, words, work) {
  const server = spawn(command, words, { stdio: ["ignore", "pipe", "pipe"] });
  try {
    const address = await new Promise((resolve, reject) => {
      const read = (chunk) => {
        const found = /(127\.0\.0\.1:\d+)/.exec(String(chunk));
        if (found) resolve(found[1]);
      };
      server.stdout.on("data", read);
      server.stderr.on("data", read);
      server.on("exit", () => reject(new Error("the server did not start")));
    });
    await work(new URL(`http://${address}/mcp`));
  } finally {
    server.kill("SIGTERM");
  }
}

function over(url, mode, ask) {
  const capabilities = ask ? { elicitation: {} } : {};
  const client = new Client2({ name: "client", version: "1" }, { capabilities, versionNegotiation: { mode } });
  if (ask) client.setRequestHandler("elicitation/create", ask);
  return client.connect(new StreamableHTTPClientTransport(url)).then(() => client);
}

/** Each client: its name, how it asks its user, and how it connects to the toolbox and to the server that asks. */
const clients = [
  {
    name: "@modelcontextprotocol/sdk",
    asks: "elicitation",
    async connected(command, words, work, ask) {
      const client = new Client1({ name: "sdk", version: "1" }, { capabilities: ask ? { elicitation: {} } : {} });
      if (ask) client.setRequestHandler(ElicitRequestSchema, ask);
      await client.connect(new StdioClientTransport({ command, args: words, stderr: "ignore" }));
      try {
        await work(client);
      } finally {
        await client.close();
      }
    },
    toolbox: (policy) => [...shared(policy), "mcp", "serve"],
    way: "stdio",
  },
  ...[
    ["legacy", "elicitation"],
    ["auto", "input_required"],
  ].map(([mode, asks]) => ({
    name: "@modelcontextprotocol/client",
    detail: mode === "auto" ? "2026-07-28" : "2025-11-25",
    asks,
    connected: (command, words, work, ask) =>
      serving(command, words, async (url) => {
        const client = await over(url, mode, ask);
        try {
          await work(client);
        } finally {
          await client.close();
        }
      }),
    toolbox: (policy) => [...shared(policy), "mcp", "serve", "--http", "127.0.0.1:0"],
    way: "http",
  })),
];

let mails = 0;
/** The client has the call's result or the refusal, and the effect happened once or not at all. */
async function settle(word, answer) {
  if (word === "approve") {
    mails += 1;
    assert.notEqual(answer.isError, true, JSON.stringify(answer));
  } else {
    assert.equal(answer.isError, true);
    assert.match(answer.content[0].text, /approval_denied/);
  }
  assert.equal(sent(), mails, "once or not at all");
  assert.deepEqual(await waiting(), []);
}

const mail = (subject) => ({ name: "mail__send_email", arguments: { to: ["ada@example.com"], subject, body: "Hello" } });
const words = ["approve", "deny"];

for (const kind of clients) {
  const { version } = JSON.parse(readFileSync(`node_modules/${kind.name}/package.json`, "utf8"));
  const name = `${kind.name} ${version}${kind.detail ? ` (${kind.detail})` : ""}`;

  await kind.connected(toolbox, kind.toolbox(asked), async (client) => {
    for (const word of words) {
      const call = () => client.callTool(mail(`${name} again ${word}`));
      for (const answer of [await call(), await call()]) {
        assert.equal(answer.isError, true);
        assert.match(answer.content[0].text, /approval_required.*Make the same call again/);
      }
      assert.equal((await waiting()).length, 1, "the same call is one call");
      await decide(asked, word);
      assert.equal(sent(), mails, "nothing happens before the client calls again");
      await settle(word, await call());
    }
  });

  for (const word of words) {
    await kind.connected(toolbox, kind.toolbox(holding), async (client) => {
      // The progress restarts the client's own limit of time.
      let progress;
      const reported = new Promise((resolve) => (progress = resolve));
      const options = { onprogress: progress, timeout: 600_000, resetTimeoutOnProgress: true };
      const call = mail(`${name} held ${word}`);
      // The SDK takes the schema of the result before the options.
      const held = kind.way === "stdio" ? client.callTool(call, undefined, options) : client.callTool(call, options);
      const [answer] = await Promise.all([held, reported.then(() => decide(holding, word))]);
      await settle(word, answer);
    });

    await kind.connected(toolbox, kind.toolbox(holding), async (client) => {
      const request = mail(`${name} late ${word}`);
      const options = { timeout: LIMIT };
      const call = () => (kind.way === "stdio" ? client.callTool(request, undefined, options) : client.callTool(request, options));
      let first = [];
      while (first.length === 0) {
        await assert.rejects(call(), isTimeout);
        first = await waiting();
      }
      await decide(holding, word);
      let answer;
      while (!answer) {
        // On a busy machine, a second attempt can be too late, too.
        try {
          answer = await call();
        } catch (error) {
          assert.ok(isTimeout(error), error);
          assert.ok((await waiting()).every(({ id }) => id === first[0].id), "a second call waits");
        }
      }
      await settle(word, answer);
    });
  }

  const effects = `${data}.effects`;
  const lines = () => (existsSync(effects) ? readFileSync(effects, "utf8").split("\n").filter(Boolean) : []);
  // The calls are alike, so each has a store of its own.
  let stores = 0;
  const serves = () => [`${data}.${clients.indexOf(kind)}.${(stores += 1)}.db`, effects, kind.way, "asks"];
  const request = { name: "killed__send", arguments: {} };
  let sends = 0;
  for (const filled of [{ approve: true }, { approve: false }, null]) {
    const questions = [];
    const ask = ({ params }) => {
      questions.push(params.message);
      return filled ? { action: "accept", content: filled } : { action: "decline" };
    };
    await kind.connected(
      served,
      serves(),
      async (client) => {
        const answer = await client.callTool(request);
        sends += filled?.approve ? 1 : 0;
        assert.equal(answer.isError === true, !filled?.approve, JSON.stringify(answer));
        if (!filled?.approve) assert.match(answer.content[0].text, /approval_denied/);
        assert.equal(questions.length, 1);
        assert.match(questions[0], /killed__send/);
        assert.equal(lines().length, sends, "once or not at all");
      },
      ask,
    );
  }
  if (kind.asks === "elicitation") {
    // The user answers when the client no longer waits for the result of the call.
    let late;
    let asks = 0;
    const isLate = new Promise((resolve) => (late = resolve));
    const ask = async () => {
      asks += 1;
      await isLate;
      return { action: "accept", content: { approve: true } };
    };
    await kind.connected(
      served,
      serves(),
      async (client) => {
        const options = { timeout: LIMIT };
        let answer;
        while (!answer) {
          try {
            answer = await (kind.way === "stdio" ? client.callTool(request, undefined, options) : client.callTool(request, options));
          } catch (error) {
            assert.ok(isTimeout(error), error);
            if (asks > 0) late();
          }
        }
        assert.notEqual(answer.isError, true, JSON.stringify(answer));
        assert.equal(lines().length, sends + 1, "once");
      },
      ask,
    );
  }
  rmSync(effects);
  console.log(
    `a call that waits: ${name}: called again, held with progress, called again after its timeout, asked by ${kind.asks}; approved and denied`,
  );
}
