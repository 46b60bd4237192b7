// The page of examples/chat-service in jsdom: a person signs in, writes, approves and denies by the page's own buttons.
// Usage: node page.mjs BASE, with the token `token-ada` known to the service.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { JSDOM } from "jsdom";

const base = process.argv[2];
const LIMIT = 600_000;

/** The page in a separate tab, with its script running. It stays open until this process ends. */
class Tab {
  static async open(hash = "") {
    const tab = new Tab();
    const beforeParse = (window) => {
      // Browsers have these; jsdom does not.
      window.fetch = (path, options) => fetch(new URL(path, base), options);
      window.TextDecoderStream = TextDecoderStream;
      Object.defineProperty(window.crypto, "randomUUID", { value: () => crypto.randomUUID() });
    };
    tab.dom = await JSDOM.fromURL(`${base}/${hash}`, { runScripts: "dangerously", resources: "usable", beforeParse });
    tab.document = tab.dom.window.document;
    await tab.until("the page", () => tab.document.readyState === "complete");
    return tab;
  }

  async until(what, holds) {
    const end = Date.now() + LIMIT;
    while (!holds()) {
      if (Date.now() > end) assert.fail(`never came: ${what}\n${this.document.body.textContent}`);
      await sleep(10);
    }
  }

  submit(form, input, value) {
    this.document.getElementById(input).value = value;
    const event = new this.dom.window.Event("submit", { bubbles: true, cancelable: true });
    this.document.getElementById(form).dispatchEvent(event);
  }

  async signs(token) {
    this.submit("sign-in", "token", token);
  }

  async says(text) {
    this.submit("say", "text", text);
  }

  get messages() {
    return [...this.document.querySelectorAll("#messages li")].map((item) => item.textContent);
  }

  get waiting() {
    return [...this.document.querySelectorAll("#waiting li")];
  }

  button(text) {
    return [...this.document.querySelectorAll("#waiting button")].find((button) => button.textContent === text);
  }

  async clicks(text, reason) {
    await this.until(`the button ${text}`, () => this.button(text));
    if (reason) this.document.querySelector("#waiting input").value = reason;
    this.button(text).click();
    await this.until("the decision", () => this.waiting.length === 0);
  }
}

const cases = {
  async a_page_without_inline_code() {
    const response = await fetch(base);
    assert.match(response.headers.get("content-security-policy"), /script-src 'self'.*require-trusted-types-for 'script'/);
    const { document } = new JSDOM(await response.text()).window;
    for (const element of document.querySelectorAll("*")) {
      for (const { name } of element.attributes) assert.doesNotMatch(name, /^(on|style)/);
    }
    assert.deepEqual([...document.scripts].map((script) => script.textContent), [""]);
  },

  async an_unknown_token() {
    const tab = await Tab.open();
    await tab.signs("token-mallory");
    await tab.until("the form", () => tab.document.getElementById("chat").hidden);
    await tab.until("a reason", () => tab.document.getElementById("token").validationMessage.includes("not known"));
  },

  async an_approval() {
    const tab = await Tab.open();
    await tab.signs("token-ada");
    await tab.until("who is who", () => tab.document.getElementById("who").textContent.includes("You are ada of acme"));
    await tab.says("order 3 hinge to 5 Main Street");
    await tab.until("the question", () => tab.waiting.length === 1);
    const [question] = tab.waiting;
    assert.match(question.textContent, /Orders 3 of the part .P-20/);
    assert.match(question.textContent, /"ship_to": "\[sensitive\]"/);
    assert.doesNotMatch(question.textContent, /Main Street/);
    await tab.clicks("Approve");
    await tab.until("the answer", () => tab.messages.at(-1).startsWith("About the order: "));
    assert.match(tab.messages.at(-1), /\d+/);
  },

  async a_denial_with_a_reason_and_text_that_looks_like_html() {
    const tab = await Tab.open();
    await tab.signs("token-ada");
    await tab.says("order 2 hinge");
    await tab.clicks("Deny", "<img src=x onerror=alert(1)>");
    await tab.until("the answer", () => tab.messages.at(-1).includes("<img src=x"));
    await tab.says("<script>document.title='taken'</script>");
    await tab.until("an answer", () => tab.messages.at(-1).startsWith("You said: <script>"));
    assert.equal(tab.document.querySelectorAll("#messages img, #messages script").length, 0);
    assert.equal(tab.document.title, "Warehouse chat");
  },

  async two_tabs_of_one_chat() {
    const one = await Tab.open("#tabs");
    const two = await Tab.open("#tabs");
    await one.signs("token-ada");
    await two.signs("token-ada");
    await one.says("order 1 hinge");
    // The other tab sees the question by itself, and its answer reaches the first.
    await two.clicks("Approve");
    await one.until("the answer", () => one.waiting.length === 0 && one.messages.at(-1)?.startsWith("About the order: "));
  },

  async the_browser_executes_a_tool() {
    const tab = await Tab.open();
    await tab.signs("token-ada");
    await tab.says("where am I");
    await tab.until("the question", () => tab.waiting.length === 1);
    assert.match(tab.waiting[0].textContent, /To find the nearest store/);
    tab.document.querySelector("#waiting input").value = "Oslo";
    const event = new tab.dom.window.Event("submit", { bubbles: true, cancelable: true });
    tab.document.querySelector("#waiting form").dispatchEvent(event);
    await tab.until("the answer", () => tab.messages.at(-1).startsWith("You are here: "));
    assert.match(tab.messages.at(-1), /Oslo/);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(cases).length} chats on the page: ${failed} wrong`);
process.exit(failed === 0 ? 0 : 1);
