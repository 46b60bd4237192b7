// The types of the official SDKs for a request body, by the name of the format. If a server accepts a key that the
// types of its SDK do not name, the key is added here. Any other unknown key is an error.

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

// The types of the SDK are for a version of the API without sampling. The version that requests name has it.
type Sampling = { temperature?: number; top_p?: number };
export type anthropic = Anthropic.MessageCreateParams & Sampling;
export type anthropic_beta = Anthropic.Beta.MessageCreateParams & Sampling;

// The server supports ids of calls, and all keywords of JSON Schema.
type Schema<T> = T extends unknown[] ? T : T extends object ? { [K in keyof T]: Schema<T[K]> } & Record<string, unknown> : T;
type Function = With<Tool["function"], { parameters?: Schema<Tool["function"]["parameters"]> }>;
type OllamaCall = ToolCall & { id?: string; function: { index?: number } };
type OllamaMessage = With<Message, { tool_calls?: OllamaCall[] }> & { tool_call_id?: string };
export type ollama = With<ChatRequest, { messages: OllamaMessage[]; tools?: With<Tool, { function: Function }>[] }>;

// The fields of a body are the types of the SDK's `config`. Its enums are strings on the wire.
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
