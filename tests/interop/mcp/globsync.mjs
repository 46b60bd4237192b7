// Node 20 has no `fs.globSync`, which the conformance suite imports and does not call for servers.
import { register } from "node:module";

const source = 'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];';
const url = "data:text/javascript," + encodeURIComponent(source);
const hook = `export async function resolve(specifier, context, next) {
  return specifier === "fs" ? { url: ${JSON.stringify(url)}, shortCircuit: true } : next(specifier, context);
}`;
if (!("globSync" in (await import("node:fs")))) register("data:text/javascript," + encodeURIComponent(hook));
