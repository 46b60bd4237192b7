// The ui_encode and ui_reject cases, and events in broken orders, through the real packages.

import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { decoders, resumers } from "./decode.mjs";

const fixtures = new URL("../../fixtures/wire/", import.meta.url);
const read = (path) => readFileSync(new URL(path, fixtures));
const json = (path) => JSON.parse(read(path));
const toolbox = process.env.TOOLBOX;

let wrong = 0;
function report(what, got, expected) {
  wrong += 1;
  console.log(`FAILED ${what}\n  got      ${JSON.stringify(got)}\n  expected ${JSON.stringify(expected)}`);
}

function encode(protocol, input) {
  const { status, stdout, stderr } = spawnSync(toolbox, ["wire", "ui", protocol], { input });
  if (status !== 0) throw new Error(`toolbox failed: ${stderr}`);
  return stdout;
}

/** Encodes one list of events after the other with one program, which ends with this one. */
const many = spawn(process.env.UI_STREAMS, { stdio: ["pipe", "pipe", "inherit"] });
const streams = createInterface({ input: many.stdout })[Symbol.asyncIterator]();
async function encodeNext(protocol, events) {
  many.stdin.write(`${JSON.stringify({ protocol, events })}\n`);
  const { value, done } = await streams.next();
  if (done) throw new Error("ui-streams ended");
  return Buffer.from(JSON.parse(value));
}

async function encodes({ id, format, input, expected_file }) {
  const bytes = encode(format, read(input));
  const [first, ...others] = decoders[format];
  const got = await first(bytes);
  if (!isDeepStrictEqual(got, json(expected_file))) report(id, got, json(expected_file));
  for (const other of others) await accepts(id, bytes, other);
}

async function accepts(what, bytes, decode) {
  const got = await decode(bytes);
  if (!got.ok || got.warnings.length > 0) report(`${what}\n${bytes}`, got, "no error and no warning");
}

async function rejects({ id, format, input, expected_file }) {
  const expected = json(expected_file);
  const got = await decoders[format][0](read(input));
  // Messages of some errors go on for several lines; how much was shown before is a matter of timing.
  const line = (error) => (error ?? "").replace(/\s+/g, " ");
  const same = got.ok === expected.ok && line(got.error).startsWith(line(expected.error).replace(/\.$/, ""));
  if (!same || !isDeepStrictEqual(got.warnings, expected.warnings)) report(id, got, expected);
}

// Every cut, every missing and every doubled event, and all of it backwards.
function* broken(events) {
  yield events.toReversed();
  for (let at = 0; at < events.length; at += 1) {
    yield events.slice(0, at);
    yield events.toSpliced(at, 1);
    yield events.toSpliced(at, 0, events[at]);
  }
}

// Keys that the packages refuse, in all the places that hold JSON.
const poison = '{"__proto__":{"x":1},"constructor":{"prototype":2}}';
const poisoned = `[
  {"type":"tool_start","id":"__proto__","name":"constructor"},
  {"type":"tool_args_delta","id":"__proto__","delta":${JSON.stringify(poison)}},
  {"type":"tool_args","id":"__proto__","arguments":${poison}},
  {"type":"tool_result","id":"__proto__","result":[${poison}],"artifact":${poison}},
  {"type":"finish","reason":"stop"}]`;

async function poisons(format) {
  for (const decode of decoders[format]) {
    const bytes = encode(format, poisoned);
    await accepts(`${format}/poisoned`, bytes, decode);
    const { parts, messages } = await decode(bytes);
    const [call] = (parts ?? messages).filter((part) => part.toolCallId === "__proto__");
    const shown = call?.result ?? call?.output ?? JSON.parse(call?.content ?? "null");
    if (shown?.[0]?._proto_?.x !== 1) report(`${format}/poisoned`, call, "the result");
  }
}

// The streams of real runs, one file for each message, named RUN.PROTOCOL.
async function runs(folder) {
  const files = readdirSync(folder).filter((name) => Object.keys(decoders).includes(name.split(".").at(-1)));
  for (const name of files) {
    const bytes = readFileSync(join(folder, name));
    for (const decode of decoders[name.split(".").at(-1)]) await accepts(name, bytes, decode);
  }
  if (files.length === 0) report(folder, files, "streams of runs");
  return files.length;
}

// A response that continues a message: each call is one part, in its final state, whichever release reads it.
async function resumes(folder) {
  const finals = { approved: "output-available", denied: "output-denied", client: "output-available" };
  let seen = 0;
  for (const [name, state] of Object.entries(finals)) {
    const [first, second] = ["first", "second"].map((part) => readFileSync(join(folder, `${name}-${part}.sse`)));
    for (const [release, resume] of Object.entries(resumers)) {
      seen += 1;
      const { message, warnings } = await resume(first, second, name);
      const tools = message.parts.filter((part) => part.toolCallId !== undefined).map((part) => part.state);
      const text = message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
      const got = { tools, text, id: message.id, warnings };
      const expected = { tools: [state], text: "That is all.", id: "msg_1", warnings: [] };
      if (!isDeepStrictEqual(got, expected)) report(`${name} resumed, ${release}`, got, expected);
    }
  }
  return seen;
}

const { cases } = json("index.json");
const of = (kind) => cases.filter((one) => one.kind === kind);
let lists = 0;
for (const one of of("ui_encode")) {
  await encodes(one);
  for (const events of broken(json(one.input))) {
    lists += 1;
    const bytes = await encodeNext(one.format, events);
    for (const decode of decoders[one.format]) await accepts(`${one.id} broken: ${JSON.stringify(events)}`, bytes, decode);
  }
}
for (const one of of("ui_reject")) await rejects(one);
for (const format of Object.keys(decoders)) await poisons(format);
const recorded = await runs(process.env.RUNS);
const resumed = await resumes(process.env.RUNS);
console.log(`${of("ui_encode").length} cases written, ${lists} broken orders, ${of("ui_reject").length} cases refused, ${recorded} streams of runs, ${resumed} resumed messages: ${wrong} wrong`);
process.exit(wrong === 0 ? 0 : 1);
