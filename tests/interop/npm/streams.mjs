// The stream parsers of the official SDKs for JavaScript, compared with the decoders: both read the same text, calls
// and usage from the same bytes, which a server on loopback sends in pieces.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { Ollama } from "ollama";
import OpenAI from "openai";

const fixtures = new URL("../../fixtures/", import.meta.url);
const read = (path) => readFileSync(new URL(path, fixtures));
const json = (path) => JSON.parse(read(path));
const LIMIT = 600_000;

const hello = [{ role: "user", content: "Hello" }];
const client = { apiKey: "k", maxRetries: 0, timeout: LIMIT };
const value = (text) => JSON.parse(text.trim() || "{}");
const counted = (input, output) => (input === undefined ? undefined : [input, output ?? 0]);

/** The result of each SDK: the text, the calls as id, name and arguments, and the tokens of input and output. */
const readers = {
  async openai_chat(url) {
    const openai = new OpenAI({ ...client, baseURL: `${url}/v1` });
    const { choices, usage } = await openai.chat.completions.stream({ model: "m", messages: hello }).finalChatCompletion();
    const { content, tool_calls = [] } = choices[0].message;
    const calls = tool_calls.map(({ id, function: called }) => [id, called.name, value(called.arguments)]);
    return { text: content ?? "", calls, usage: counted(usage?.prompt_tokens, usage?.completion_tokens) };
  },

  async openai_responses(url) {
    const openai = new OpenAI({ ...client, baseURL: `${url}/v1` });
    const { output, output_text, usage } = await openai.responses.stream({ model: "m", input: "Hello" }).finalResponse();
    const called = output.filter(({ type }) => type === "function_call");
    const calls = called.map((call) => [call.call_id, call.name, value(call.arguments)]);
    return { text: output_text, calls, usage: counted(usage?.input_tokens, usage?.output_tokens) };
  },

  async anthropic(url) {
    const anthropic = new Anthropic({ ...client, baseURL: url });
    const { content, usage } = await anthropic.messages.stream({ model: "m", max_tokens: 10, messages: hello }).finalMessage();
    const text = content.filter(({ type }) => type === "text").map((block) => block.text).join("");
    const called = content.filter(({ type }) => type === "tool_use");
    const calls = called.map((call) => [call.id, call.name, call.input]);
    return { text, calls, usage: counted(usage.input_tokens, usage.output_tokens) };
  },

  async ollama(url) {
    const parts = await new Ollama({ host: url }).chat({ model: "m", messages: hello, stream: true });
    const got = { text: "", calls: [], usage: undefined };
    for await (const { message, prompt_eval_count, eval_count } of parts) {
      got.text += message.content ?? "";
      got.calls.push(...(message.tool_calls ?? []).map(({ id, function: called }) => [id, called.name, called.arguments]));
      got.usage = counted(prompt_eval_count, eval_count) ?? got.usage;
    }
    return got;
  },

  async gemini(url) {
    const { models } = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: url, timeout: LIMIT } });
    const got = { text: "", calls: [], usage: undefined };
    for await (const { candidates, usageMetadata: usage } of await models.generateContentStream({ model: "m", contents: "Hello" })) {
      for (const { text, thought, functionCall: call } of candidates?.[0]?.content?.parts ?? []) {
        if (text && !thought) got.text += text;
        if (call) got.calls.push([call.id, call.name, call.args ?? {}]);
      }
      const written = (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0);
      got.usage = counted(usage?.promptTokenCount, written) ?? got.usage;
    }
    return got;
  },
};

function decode(format, body) {
  const { status, stdout, stderr } = spawnSync(process.env.TOOLBOX, ["wire", "decode", format.replace("_", "-")], { input: body });
  if (status !== 0) throw new Error(`toolbox failed: ${stderr}`);
  const { text, calls, usage } = JSON.parse(stdout);
  const seen = calls.map((call) => [call.id_source === "provider" ? call.id : undefined, call.name, call.arguments]);
  return { text, calls: seen, usage: usage && [usage.input_tokens, usage.output_tokens] };
}

/** Streams that an SDK can assemble: those of the golden files, and those of real providers. */
function* cases() {
  for (const { id, kind, format, class: how, input, verified_with: sdks = [] } of json("wire/index.json").cases) {
    const known = sdks.some((sdk) => /^(openai|anthropic|@anthropic-ai|ollama|google-genai)\b/.test(sdk));
    if (kind !== "stream" || how !== "well_formed" || !known) continue;
    const body = read(`wire/${input}`);
    const isWhole = format !== "ollama" && /^\s*[[{]/.test(body);
    if (!isWhole) yield { id, format, body };
  }
  for (const { id, format, stream, file, judged, tags } of json("recorded/index.json")) {
    // This SDK is wrong here: it treats each block of a list of content as a string.
    if (stream && !judged && !tags.includes("content_list")) yield { id, format, body: read(`recorded/${file}`) };
  }
}

const all = [...cases()];
for (const format of Object.keys(readers)) {
  if (!all.some((one) => one.format === format)) throw new Error(`no streams of ${format}`);
}
// The first part of the path names the case. Pieces of this size break lines and characters.
const PIECE = 61;
const server = createServer((request, response) => {
  request.resume();
  const { format, body } = all[Number(request.url.split("/")[1])];
  response.setHeader("content-type", format === "ollama" ? "application/x-ndjson" : "text/event-stream");
  for (let at = 0; at < body.length; at += PIECE) response.write(body.subarray(at, at + PIECE));
  // Some recordings lack the empty line after the last event, without which it does not count.
  response.end("\n\n");
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const base = `http://127.0.0.1:${server.address().port}`;

let wrong = 0;
for (const [at, { id, format, body }] of all.entries()) {
  const ours = decode(format, body);
  let theirs;
  try {
    theirs = await readers[format](`${base}/${at}`);
    // An id that was made here, and one that the SDK does not know.
    for (const [n, call] of ours.calls.entries()) {
      const [id] = theirs.calls[n] ?? [];
      if (call[0] === undefined || !id) call[0] = id;
    }
  } catch (error) {
    theirs = `${error}`;
  }
  if (!isDeepStrictEqual(ours, theirs)) {
    wrong += 1;
    console.log(`FAILED ${format} ${id}\n  ours  ${JSON.stringify(ours)}\n  SDK's ${JSON.stringify(theirs)}`);
  }
}
server.close();
server.closeAllConnections();
console.log(`${all.length} streams assembled by the SDKs for JavaScript: ${wrong} wrong`);
process.exit(wrong === 0 ? 0 : 1);
