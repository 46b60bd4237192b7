// The page of the chat service. It writes every text with `textContent`, so nothing that a person, a model or a tool
// wrote is read as HTML.
"use strict";

const element = (id) => document.getElementById(id);
const token = () => sessionStorage.getItem("token");

/** The interval at which the page looks for news: a decision of another person, or a turn that another process ended. */
const LOOK = 1000;

let sending = false;
let shown = "";

/** The id of the chat, in the address so that a reload continues it. */
function chat() {
  if (location.hash.length < 2) location.hash = crypto.randomUUID();
  return decodeURIComponent(location.hash.slice(1));
}

function request(path, options) {
  const headers = { authorization: `Bearer ${token()}`, "content-type": "application/json" };
  return fetch(path, { ...options, headers });
}

function make(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function report(text) {
  element("status").textContent = text;
}

/** The text of a refusal: `{ error: { code, message } }`. */
async function refusal(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the service answered ${response.status}`;
  }
}

/** Shows the chat as the service has it. */
async function refresh() {
  if (!token() || sending) return;
  const id = chat();
  let response;
  try {
    response = await request(`/api/chats/${encodeURIComponent(id)}`);
  } catch {
    return report("the service cannot be reached");
  }
  if (response.status === 401) return signOut("this token is not known");
  if (!response.ok) return report(await refusal(response));
  const text = await response.text();
  // A reason that is being written must not be lost, so only news is drawn.
  if (text === shown || sending || id !== chat()) return;
  shown = text;
  draw(JSON.parse(text));
}

function draw(state) {
  element("who").textContent =
    `You are ${state.principal} of ${state.tenant}, and the model acts for ${state.principal}. ` +
    `A call that waits is decided by ${state.principal} or another person of ${state.tenant}, as the policy says.`;
  element("messages").replaceChildren(...state.messages.map(({ role, text }) => make("li", text, role)));
  element("waiting").replaceChildren(...state.waiting.map(question));
  report(state.running ? "working .." : "");
}

/** A call that waits: its sentence, its arguments, and the answers to it. */
function question(call) {
  const item = make("li");
  item.dataset.call = call.call;
  if (call.isClient) return asksBrowser(item, call);
  item.append(make("strong", call.sentence ?? `Calls ${call.tool}`), make("div", `${call.tool} with`));
  item.append(make("pre", JSON.stringify(call.arguments, null, 2)));
  if (call.expires) item.append(make("div", `It expires at ${call.expires}.`));
  if (call.required > 1) item.append(make("div", approvals(call)));
  if (call.decided) {
    item.append(make("div", "It is decided, and the service carries the decision out."));
    return item;
  }
  if (!call.mayDecide) {
    item.append(make("div", "Another person decides."));
    return item;
  }
  const form = make("form");
  const reason = make("input");
  reason.placeholder = "reason, which the model reads after a denial";
  reason.setAttribute("aria-label", "Reason");
  const approve = make("button", "Approve");
  const deny = make("button", "Deny");
  approve.type = deny.type = "button";
  const decides = (approved) => {
    const approval = { id: call.question, approved, reason: reason.value || undefined };
    const part = { type: `tool-${call.tool}`, toolCallId: call.call, state: "approval-responded", input: {}, approval };
    send("assistant", part);
  };
  approve.addEventListener("click", () => decides(true));
  deny.addEventListener("click", () => decides(false));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(reason, approve, deny);
  item.append(form);
  return item;
}

/** The approvals of a call that needs several people. */
function approvals({ approvedBy, required }) {
  const by = approvedBy.length ? `, by ${approvedBy.join(", ")}` : "";
  return `${approvedBy.length} of ${required} approvals${by}`;
}

/** A call of the tool that the browser executes: here the person answers. */
function asksBrowser(item, call) {
  const form = make("form");
  const city = make("input");
  city.placeholder = "city";
  city.required = true;
  city.setAttribute("aria-label", "City");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const part = { type: `tool-${call.tool}`, toolCallId: call.call, state: "output-available", input: {} };
    send("assistant", { ...part, output: { city: city.value } });
  });
  form.append(city, make("button", "Answer"));
  item.append(make("strong", call.payload?.question ?? call.tool), form);
  return item;
}

/** Posts one message as `useChat` does, and shows the stream of the answer. */
async function send(role, part) {
  if (sending) return;
  sending = true;
  report("working ..");
  const body = { id: chat(), messages: [{ id: crypto.randomUUID(), role, parts: [part] }] };
  let problem = "";
  try {
    const response = await request("/api/chat", { method: "POST", body: JSON.stringify(body) });
    if (response.ok) {
      problem = await read(response);
    } else {
      problem = await refusal(response);
    }
  } catch {
    problem = "the connection broke; the service ends the turn";
  }
  sending = false;
  shown = "";
  await refresh();
  if (problem) report(problem);
}

/** Shows the text of a stream of server-sent events as it arrives. Returns the text of an error, or "". */
async function read(response) {
  const answer = make("li", "", "assistant");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  let problem = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return problem;
    const lines = (buffer + value).split("\n");
    buffer = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const event = JSON.parse(line.slice(6));
      if (event.type === "error") problem = event.errorText;
      if (event.type !== "text-delta") continue;
      if (!answer.isConnected) element("messages").append(answer);
      answer.textContent += event.delta;
    }
  }
}

function signIn() {
  element("sign-in").hidden = true;
  element("chat").hidden = false;
  shown = "";
  refresh();
}

function signOut(problem) {
  sessionStorage.removeItem("token");
  element("sign-in").hidden = false;
  element("chat").hidden = true;
  element("token").setCustomValidity(problem);
  element("token").reportValidity();
}

element("token").addEventListener("input", () => element("token").setCustomValidity(""));
element("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", element("token").value.trim());
  signIn();
});
element("sign-out").addEventListener("click", () => signOut(""));
element("another").addEventListener("click", () => {
  location.hash = crypto.randomUUID();
});
element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const { value } = element("text");
  if (!value.trim() || sending) return;
  element("text").value = "";
  element("messages").append(make("li", value, "user"));
  send("user", { type: "text", text: value });
});
window.addEventListener("hashchange", () => {
  shown = "";
  refresh();
});
setInterval(refresh, LOOK);
if (token()) signIn();
