// Notices that `toolbox notices send` posts are verified by the package of Standard Webhooks, also while a secret is
// replaced by the next one.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";

const [old, next, other] = ["old", "next", "other"].map(
  (name) => `whsec_${Buffer.from(name.padEnd(32, "-")).toString("base64")}`,
);
const home = mkdtempSync(join(tmpdir(), "webhook-"));
const received = [];
const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
  response.writeHead(204).end();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");

const env = {
  PATH: process.env.PATH,
  HOME: home,
  TOOLBOX_DATA: join(home, "data"),
  TOOLBOX_POLICY: join(home, "policy.toml"),
  TOOLBOX_NOTICES_URL: `http://127.0.0.1:${server.address().port}/hook`,
  TOOLBOX_NOTICES_SECRET_ENV: "SECRETS",
  SECRETS: `${old} ${next}`,
};
const policy = `allowed_tools = ["mail__send_email"]
require_approval_for_effects = ["external_side_effect"]
[approvals]
own_calls = true
[notices]
`;
writeFileSync(env.TOOLBOX_POLICY, policy);

async function toolbox(expected, ...words) {
  const child = spawn(process.env.TOOLBOX, words, { env, stdio: ["ignore", "pipe", "inherit"] });
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  const [code] = await once(child, "close");
  if (code !== expected) throw new Error(`toolbox ${words.join(" ")}: ${code}`);
  return Buffer.concat(chunks).toString();
}

try {
  const mail = { to: ["ada@example.com"], subject: "Hello", body: "A “quoted” body" };
  await toolbox(5, "call", "mail__send_email", JSON.stringify(mail));
  const [call] = JSON.parse(await toolbox(0, "--json", "approvals", "list"));
  await toolbox(0, "approvals", "deny", call.id, "not now");
  await toolbox(0, "notices", "send");
  const types = received.map(({ body }) => JSON.parse(body).type).sort();
  if (types.join() !== "call.decided,call.waiting") throw new Error(`received ${types}`);
  for (const { headers, body } of received) {
    for (const secret of [old, next]) {
      const read = new Webhook(secret).verify(body, headers);
      if (read.data.call_id !== call.id) throw new Error("another call");
    }
    const refuses = (what, verify) => {
      try {
        verify();
      } catch {
        return;
      }
      throw new Error(`${what} is accepted`);
    };
    refuses("another secret", () => new Webhook(other).verify(body, headers));
    refuses("another body", () => new Webhook(old).verify(`${body} `, headers));
    refuses("another id", () => new Webhook(old).verify(body, { ...headers, "webhook-id": "msg_1" }));
    refuses("an old time", () => new Webhook(old).verify(body, { ...headers, "webhook-timestamp": "1614265330" }));
  }
  console.log(`standardwebhooks: ${received.length} notices verified with each of two secrets`);
} finally {
  server.close();
  rmSync(home, { recursive: true, force: true });
}
