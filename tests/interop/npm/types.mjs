// Every request body that the Python SDKs accepted is one that the SDKs for TypeScript could send: each becomes an
// expression of the type that `requests.ts` gives to its format, and the compiler decides.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const runs = process.env.RUNS;
const FORMATS = ["openai_chat", "openai_responses", "anthropic", "ollama", "gemini"];

const messages = (body) => body.messages ?? body.input ?? body.contents;

/** Changes that break a body. */
const spoils = {
  "an unknown key": (body) => (body.unheard_of = 1),
  "a model that is a number": (body) => (body.model = 3.5),
  "no messages": (body) => ["messages", "input", "contents"].forEach((key) => delete body[key]),
  "a message that is a number": (body) => messages(body).push(3.5),
  "a role that is a number": (body) => (messages(body).find((one) => one.role === "user").role = 3.5),
  "a message with an unknown key": (body) => (messages(body).find((one) => one.role === "user").unheard_of = 1),
};
const spoilsOfTools = {
  "a tool that is a number": (body) => body.tools.push(3.5),
  "a tool with an unknown key": (body) => (body.tools[0].unheard_of = 1),
};

/** The bodies that `check.py` left. */
const lines = readFileSync(join(runs, "checked.jsonl"), "utf8").split("\n").filter(Boolean);
const all = lines.map((line) => JSON.parse(line)).map((one) => ({ ...one, type: one.beta ? `${one.format}_beta` : one.format }));
const source = [`import type * as sdk from ${JSON.stringify(join(here, "requests.ts"))};`];
// One line for each, so that an error names one body.
const write = (type, body) => source.push(`(${JSON.stringify(body)}) satisfies sdk.${type};`);
const places = new Map();
for (const { type, name, body } of all) {
  write(type, body);
  places.set(source.length, `${type}: ${name}`);
}
let spoiled = 0;
for (const type of [...FORMATS, "anthropic_beta"]) {
  const asked = all.filter((one) => one.type === type && messages(one.body).some(({ role }) => role === "user"));
  const { body: whole } = asked.find(({ body }) => body.tools) ?? asked[0];
  if (!whole.tools && type !== "anthropic_beta") throw new Error(`no body of ${type} has tools`);
  for (const [how, spoil] of Object.entries({ ...spoils, ...(whole.tools && spoilsOfTools) })) {
    const body = structuredClone(whole);
    spoil(body);
    source.push("// @ts-expect-error");
    write(type, body);
    places.set(source.length - 1, `${type}: accepted with ${how}`);
    spoiled += 1;
  }
}

writeFileSync(join(runs, "bodies.ts"), source.join("\n"));
const options = { strict: true, noEmit: true, skipLibCheck: true, target: "es2024", module: "nodenext", types: [] };
const config = { compilerOptions: { ...options, lib: ["es2024", "dom"], allowImportingTsExtensions: true }, files: ["bodies.ts"] };
writeFileSync(join(runs, "tsconfig.json"), JSON.stringify(config));
if (!existsSync(join(runs, "node_modules"))) symlinkSync(join(here, "node_modules"), join(runs, "node_modules"));

const compiler = join(here, "node_modules/.bin/tsc");
const { status, stdout, stderr, error } = spawnSync(compiler, ["--project", runs, "--pretty", "false"], { encoding: "utf8" });
if (error) throw error;
const wrong = new Set();
for (const [, line, message] of stdout.matchAll(/bodies\.ts\((\d+),\d+\): error (.*)/g)) {
  const place = places.get(Number(line)) ?? `line ${line}`;
  wrong.add(place);
  console.log(`FAILED ${place}: ${message.slice(0, 300)}`);
}
if (status !== 0 && wrong.size === 0) console.log(`FAILED ${stdout}${stderr}`);
console.log(`${all.length} bodies of the types for TypeScript, ${spoiled} spoiled ones: ${wrong.size} wrong`);
process.exit(status === 0 ? 0 : 1);
