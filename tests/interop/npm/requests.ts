// What the official SDKs say a request body is, by the name of the format. Where a server takes what the types of its
// SDK do not name, the addition is here, by its name: anything else that they do not know is an error.

import type Anthropic from "@anthropic-ai/sdk";
import type * as genai from "@google/genai";
import type { ChatRequest, Message, Tool, ToolCall } from "ollama";
import type OpenAI from "openai";

/** `T` with other types for some of its keys; of each member if it is a union. */
type With<T, Other> = T extends unknown ? Omit<T, keyof Other> & Other : never;

// Fields of compatible servers, which go back to the server that sent them.
type ChatCall = OpenAI.Chat.ChatCompletionMessageToolCall & { extra_content?: object };
type ChatAnswer = With<OpenAI.Chat.ChatCompletionAssistantMessageParam, { tool_calls?: ChatCall[] }> & {
  reasoning?: string;
  reasoning_content?: string;
  reasoning_details?: object[];
};
type ChatMessage = Exclude<OpenAI.Chat.ChatCompletionMessageParam, { role: "assistant" }> | ChatAnswer;
export type openai_chat = With<OpenAI.Chat.ChatCompletionCreateParams, { messages: ChatMessage[] }>;

// A message of the assistant that the provider did not write has neither an id nor a status.
type Unnamed = Omit<OpenAI.Responses.ResponseOutputMessage, "id" | "status">;
type Item = OpenAI.Responses.ResponseInputItem | Unnamed;
export type openai_responses = With<OpenAI.Responses.ResponseCreateParams, { input: Item[] }>;

// The SDK speaks a version of the API that has no sampling; the version that is named in requests has it.
type Sampling = { temperature?: number; top_p?: number };
export type anthropic = Anthropic.MessageCreateParams & Sampling;
export type anthropic_beta = Anthropic.Beta.MessageCreateParams & Sampling;

// The server knows ids of calls, and all keywords of JSON Schema.
type Schema<T> = T extends unknown[] ? T : T extends object ? { [K in keyof T]: Schema<T[K]> } & Record<string, unknown> : T;
type Function = With<Tool["function"], { parameters?: Schema<Tool["function"]["parameters"]> }>;
type OllamaCall = ToolCall & { id?: string; function: { index?: number } };
type OllamaMessage = With<Message, { tool_calls?: OllamaCall[] }> & { tool_call_id?: string };
export type ollama = With<ChatRequest, { messages: OllamaMessage[]; tools?: With<Tool, { function: Function }>[] }>;

// The SDK takes the fields of a body apart; they are the types of its `config`. Its enums are words on the wire.
type Word<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Word<T[K]> } : T;
type Config = Pick<genai.GenerateContentConfig, "labels" | "serviceTier" | "toolConfig">;
export type gemini = Word<
  Config & {
    model?: string;
    contents: genai.Content[];
    generationConfig?: genai.GenerationConfig;
    systemInstruction?: genai.Content;
    tools?: genai.Tool[];
  }
>;
