// The official TypeScript SDK as a client: over HTTP to the fixtures, over standard input and output to both programs.
// Once it has listed the tools, it refuses a result that does not fit the tool's output schema.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, fixtures, toolbox, data] = process.argv.slice(2);

async function fixture(transport) {
  const client = new Client({ name: "sdk", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.equal(tools.length, 14);
  for (const { annotations } of tools) {
    assert.equal(Object.values(annotations).filter((hint) => typeof hint === "boolean").length, 4);
  }
  const text = await client.callTool({ name: "test_simple_text", arguments: {} });
  assert.deepEqual(text.structuredContent, { result: "This is a simple text response for testing." });
  assert.equal(text.content[0].text, text.structuredContent.result);
  const mixed = await client.callTool({ name: "test_multiple_content_types", arguments: {} });
  assert.deepEqual(mixed.content.map((block) => block.type), ["text", "image", "resource"]);
  const failed = await client.callTool({ name: "test_error_handling", arguments: {} });
  assert.equal(failed.isError, true);
  assert.equal(failed.content[0].text, "This tool intentionally returns an error for testing");
  // Without a form, the tool gets an error that it can handle.
  const unasked = await client.callTool({ name: "test_elicitation", arguments: { message: "Who?" } });
  assert.equal(unasked.isError, true);
  for (const name of ["nothing", "fixtures__simple_text"]) {
    await assert.rejects(client.callTool({ name, arguments: {} }), { code: -32602, message: new RegExp(`Unknown tool: ${name}`) });
  }
  await client.close();
}

await fixture(new StreamableHTTPClientTransport(new URL(url)));
await fixture(new StdioClientTransport({ command: fixtures, stderr: "ignore" }));

const client = new Client({ name: "sdk", version: "1" });
await client.connect(new StdioClientTransport({ command: toolbox, args: ["--data", data, "--store", `sqlite:${data}.db`, "mcp", "serve"] }));
const { tools } = await client.listTools();
assert.ok(tools.length > 5 && tools.every((tool) => tool.inputSchema.type === "object"));
await client.close();
console.log(`the TypeScript SDK 1.32.2: both transports, ${tools.length} tools of the toolbox`);
