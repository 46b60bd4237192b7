"""The results of the official SDKs for a response: text, and calls as id, name and arguments."""

import functools
import json
import ssl

import anthropic
import ollama
import openai
from google import genai

from replay import Replay

# Each client would read all certificates anew, and loopback needs none.
ssl.create_default_context = functools.cache(ssl.create_default_context)


def openai_chat(port: int, stream: bool):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0, timeout=600)
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    if stream:
        with client.chat.completions.stream(**asked) as events:
            for _ in events:
                pass
            message = events.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**asked).choices[0].message
    calls = message.tool_calls or []
    return message.content or "", [(call.id, call.function.name, call.function.arguments) for call in calls]


def openai_responses(port: int, stream: bool):
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0, timeout=600)
    asked = {"model": "m", "input": "Hello"}
    if stream:
        with client.responses.stream(**asked) as events:
            for _ in events:
                pass
            response = events.get_final_response()
    else:
        response = client.responses.create(**asked)
    calls = [item for item in response.output if item.type == "function_call"]
    return response.output_text, [(call.call_id, call.name, call.arguments) for call in calls]


def anthropic_messages(port: int, stream: bool):
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key="k", max_retries=0, timeout=600)
    asked = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "Hello"}]}
    if stream:
        with client.messages.stream(**asked) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [block for block in message.content if block.type == "tool_use"]
    return text, [(call.id, call.name, json.dumps(call.input)) for call in calls]


def ollama_chat(port: int, stream: bool):
    client = ollama.Client(host=f"http://127.0.0.1:{port}", timeout=600)
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    parts = client.chat(**asked, stream=True) if stream else [client.chat(**asked)]
    text, calls = "", []
    for part in parts:
        text += part.message.content or ""
        for call in part.message.tool_calls or []:
            calls.append((None, call.function.name, json.dumps(call.function.arguments)))
    return text, calls


def gemini(port: int, stream: bool):
    client = genai.Client(api_key="k", http_options={"base_url": f"http://127.0.0.1:{port}", "timeout": 600_000})
    asked = {"model": "m", "contents": "Hello"}
    chunks = list(client.models.generate_content_stream(**asked)) if stream else [client.models.generate_content(**asked)]
    text, calls = "", []
    for chunk in chunks:
        parts = (chunk.candidates[0].content.parts if chunk.candidates and chunk.candidates[0].content else None) or []
        text += "".join(part.text for part in parts if part.text and not part.thought)
        calls += [(part.function_call.id, part.function_call.name, part.function_call.args or {}) for part in parts if part.function_call]
    return text, calls


READERS = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "anthropic": anthropic_messages,
    "ollama": ollama_chat,
    "gemini": gemini,
}


def assemble(name: str, response: bytes, stream: bool):
    """The SDK's reading of one response over a real connection."""
    with Replay([response]) as server:
        return READERS[name](server.port, stream)
