// Passes requests on to the server that the file `argv[2]` names, and counts the calls of tools in them. Prints its
// port at the beginning, and the count at its end.
import { readFileSync } from "node:fs";
import http from "node:http";

const target = () => new URL(readFileSync(process.argv[2], "utf8").trim());
let calls = 0;

const proxy = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  if (request.method === "POST") {
    try {
      calls += [JSON.parse(body)].flat().filter((message) => message.method === "tools/call").length;
    } catch {
      // Not JSON, so no call.
    }
  }
  const { hostname, port, pathname: path } = target();
  const { method, headers } = request;
  const passed = http.request({ hostname, port, path, method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  passed.end(body);
});

proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
process.on("SIGTERM", () => {
  console.log(calls);
  process.exit(0);
});
