// Decodes a UI stream into the shape of the fixtures, with the package that chat UIs use.

import { isDeepStrictEqual } from "node:util";
import { HttpAgent } from "@ag-ui/client";
import { AGUI_MEDIA_TYPE, EventEncoder } from "@ag-ui/encoder";
import * as ai from "ai";
import { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } from "ai";
import * as ai6 from "ai6";
import {
  AssistantMessageAccumulator,
  AssistantTransportDecoder,
  DataStreamDecoder,
  UIMessageStreamDecoder,
} from "assistant-stream";

// In pieces, so that no decoder sees frames whole.
function stream(bytes, cut = 7) {
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += cut) controller.enqueue(new Uint8Array(bytes.subarray(at, at + cut)));
      controller.close();
    },
  });
}

// A warning of the packages counts as an error, too: a dropped frame is a lost result.
async function listening(act) {
  const { warn, error } = console;
  const warnings = [];
  console.warn = console.error = (message) => warnings.push(String(message));
  try {
    return await act(warnings);
  } finally {
    Object.assign(console, { warn, error });
  }
}

const plain = (value) => JSON.parse(JSON.stringify(value));

function assistant(protocol, Decoder) {
  return (bytes) =>
    listening(async (warnings) => {
      const shown = { protocol, ok: true, parts: [], status: null, steps: [], error: null, warnings };
      try {
        const messages = stream(bytes).pipeThrough(new Decoder()).pipeThrough(new AssistantMessageAccumulator());
        for await (const message of messages) {
          shown.parts = message.parts.map(({ timing, ...part }) => ({ ...part, part_finished: isFinished(part) }));
          shown.status = message.status;
          shown.steps = message.metadata.steps;
        }
      } catch (error) {
        Object.assign(shown, { ok: false, error: error.message });
      }
      return plain(shown);
    });
}

// A result alone completes a call with another reason. Parts that come whole have no status.
const isFinished = ({ status }) => status === undefined || (status.type === "complete" && status.reason === "unknown");

function messageStream(bytes) {
  return listening(async (warnings) => {
    const shown = { protocol: "ui-message-stream", ok: true, parts: [], status: null, steps: [], error: null, warnings };
    Object.assign(shown, { message_id: null, finish_reason: null, done_marker: false, stream_errors: [] });
    shown.done_marker = Buffer.from(bytes).toString().endsWith("data: [DONE]\n\n");
    const fail = (error) => Object.assign(shown, { ok: false, error: error.message });
    const chunks = parseJsonEventStream({ stream: stream(bytes), schema: uiMessageChunkSchema }).pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          if (!chunk.success) throw chunk.error;
          if (chunk.value.type === "finish") shown.finish_reason = chunk.value.finishReason;
          if (chunk.value.type === "error") shown.stream_errors.push(chunk.value.errorText);
          controller.enqueue(chunk.value);
        },
      }),
    );
    const onError = (error) => shown.stream_errors.includes(error.message) || fail(error);
    let last;
    for await (const message of readUIMessageStream({ stream: chunks, onError })) {
      shown.parts = message.parts;
      shown.message_id = message.id;
      last = message;
    }
    // A server that gets the message back checks it.
    if (last?.parts.length > 0) await ai.validateUIMessages({ messages: [last] }).catch(fail);
    return plain(shown);
  });
}

// The client of AG-UI with all its stages: the schemas, the order of events, the messages that it builds.
function agUi(bytes) {
  return listening(async (warnings) => {
    const shown = await agUiRun(bytes, "text/event-stream");
    if (shown.ok) {
      const events = bytes.toString().split("\n\n").slice(0, -1).map((frame) => JSON.parse(frame.slice("data: ".length)));
      // The same bytes as from the official encoder, and the same run in its binary form.
      const official = new EventEncoder({ accept: AGUI_MEDIA_TYPE });
      if (events.map((event) => official.encodeSSE(event)).join("") !== bytes.toString()) warnings.push("not the bytes of @ag-ui/encoder");
      const binary = await agUiRun(Buffer.concat(events.map((event) => official.encodeBinary(event))), AGUI_MEDIA_TYPE, 4096);
      if (!isDeepStrictEqual(binary, shown)) warnings.push(`in binary form: ${JSON.stringify(binary)}`);
    }
    return { ...shown, warnings };
  });
}

async function agUiRun(bytes, type, cut) {
  const shown = { protocol: "ag-ui", ok: true, messages: [], outcome: null, pending: [], interrupts: [], custom: [] };
  Object.assign(shown, { usage: [], stream_errors: [], error: null });
  const response = () => new Response(stream(bytes, cut), { headers: { "content-type": type } });
  const agent = new HttpAgent({ url: "http://localhost/", fetch: async () => response() });
  // The values that these return would replace the messages of the agent.
  const seen = {
    onCustomEvent: ({ event }) => void shown.custom.push({ name: event.name, value: event.value }),
    onRunErrorEvent: ({ event }) => void shown.stream_errors.push(event.message),
    onRunFinishedEvent: ({ event, outcome, pendingToolCallIds = [] }) =>
      void Object.assign(shown, { outcome, pending: pendingToolCallIds, usage: event.usage ?? [] }),
  };
  try {
    await agent.runAgent({}, seen);
  } catch (error) {
    Object.assign(shown, { ok: false, error: error.message });
  }
  if (shown.ok && shown.outcome === null && shown.stream_errors.length === 0) {
    Object.assign(shown, { ok: false, error: "the run did not end" });
  }
  Object.assign(shown, { messages: agent.messages, interrupts: agent.pendingInterrupts });
  return plain(shown);
}

export const decoders = {
  "data-stream": [assistant("data-stream", DataStreamDecoder)],
  "assistant-transport": [assistant("assistant-transport", AssistantTransportDecoder)],
  "ui-message-stream": [messageStream, assistant("ui-message-stream", UIMessageStreamDecoder)],
  "ag-ui": [agUi],
};

// The message that a client has after two responses. Between them a person decides, as in the chat.
function resumer(release) {
  const read = async (bytes, message) => {
    const chunks = release.parseJsonEventStream({ stream: stream(bytes), schema: release.uiMessageChunkSchema });
    const values = chunks.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          if (!chunk.success) throw chunk.error;
          controller.enqueue(chunk.value);
        },
      }),
    );
    let last = message;
    for await (const next of release.readUIMessageStream({ message, stream: values, terminateOnError: true })) last = next;
    return plain(last);
  };
  return (first, second, name) =>
    listening(async (warnings) => {
      const message = await read(first);
      const [call] = message.parts.filter((part) => part.toolCallId !== undefined);
      if (name === "client") Object.assign(call, { state: "output-available", output: 7 });
      else Object.assign(call, { state: "approval-responded", approval: { ...call.approval, approved: name === "approved" } });
      const resumed = await read(second, message);
      await release.validateUIMessages({ messages: [resumed] }).catch((error) => warnings.push(error.message));
      return { message: resumed, warnings };
    });
}

export const resumers = { ai: resumer(ai), ai6: resumer(ai6) };
