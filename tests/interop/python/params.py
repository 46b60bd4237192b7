"""The types of the official SDKs for a request body, as validators that check every part of it."""

import collections.abc
from typing import Annotated, Any

from anthropic.types.beta.beta_message_param import BetaMessageParam
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from google.genai import types as genai
from ollama._types import ChatRequest
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import Field, TypeAdapter

FORMATS = ["openai_chat", "openai_responses", "anthropic", "ollama", "gemini"]

TYPED = {
    "openai_chat": (CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming),
    "openai_responses": (ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming),
    "anthropic": (MessageCreateParamsNonStreaming, MessageCreateParamsStreaming),
}
BETA = TypeAdapter(list[BetaMessageParam])
ADAPTERS = {name: tuple(TypeAdapter(one) for one in both) for name, both in TYPED.items()}


def consume(value: Any) -> None:
    """The SDKs type lists as iterables, which are checked only while somebody iterates."""
    if isinstance(value, dict):
        for one in value.values():
            consume(one)
    elif not isinstance(value, (str, bytes)) and isinstance(value, collections.abc.Iterable):
        for one in value:
            consume(one)


def with_provider_fields(body: dict) -> dict:
    """The Responses types want an id and a status in an assistant's message, which only the provider could have given:
    the wire format of this project leaves both out."""
    given = {"id": "msg_1", "status": "completed"}
    items = body.get("input")
    if not isinstance(items, list):
        return body
    is_answer = lambda item: isinstance(item, dict) and item.get("type") == "message" and item.get("role") == "assistant"
    return {**body, "input": [{**given, **item} if is_answer(item) else item for item in items]}


def check_turn(name: str, body: dict) -> str | None:
    """Like `check` for the request after a turn: blocks of tools that are in beta have types of their own. Returns
    "beta" if these were needed."""
    try:
        check(name, body)
    except ValueError:
        if name != "anthropic":
            raise
        consume(BETA.validate_python(body["messages"]))
        check(name, {**body, "messages": []})
        return "beta"
    return None


def check(name: str, body: dict) -> None:
    """Raises if the SDK's own types refuse the body, or lack one of its keys."""
    if name == "openai_responses":
        body = with_provider_fields(body)
    if name in TYPED:
        streaming = bool(body.get("stream"))
        consume(ADAPTERS[name][streaming].validate_python(body))
        known = TYPED[name][streaming].__annotations__.keys()
        bases = [base.__annotations__.keys() for base in TYPED[name][streaming].__orig_bases__ if hasattr(base, "__annotations__")]
        unknown = set(body) - set(known).union(*bases)
        if name == "anthropic":
            # The SDK's types are for version 2026-10-21, which has no sampling. The client names 2023-06-01, which has
            # it.
            for key in unknown & {"temperature", "top_p"}:
                TypeAdapter(Annotated[float, Field(ge=0, le=1)]).validate_python(body[key], strict=True)
            unknown -= {"temperature", "top_p"}
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}")
    elif name == "ollama":
        ChatRequest.model_validate(body)
        unknown = set(body) - set(ChatRequest.model_fields)
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}")
    else:
        rest = dict(body)
        for content in rest.pop("contents", []):
            genai.Content.model_validate(content)
        for tool in rest.pop("tools", []):
            genai.Tool.model_validate(tool)
        if "toolConfig" in rest:
            genai.ToolConfig.model_validate(rest.pop("toolConfig"))
        if "systemInstruction" in rest:
            genai.Content.model_validate(rest.pop("systemInstruction"))
        if "generationConfig" in rest:
            genai.GenerationConfig.model_validate(rest.pop("generationConfig"))
        if "serviceTier" in rest:
            genai.ServiceTier(rest.pop("serviceTier"))
        if "labels" in rest:
            TypeAdapter(dict[str, str]).validate_python(rest.pop("labels"))
        rest.pop("model", None)
        if rest:
            raise ValueError(f"unknown keys {sorted(rest)}")


def whole(name: str, parts: dict) -> dict:
    """Parts of a body with the rest of what a request needs."""
    body = {"model": "m", **parts}
    if name == "openai_responses":
        body.setdefault("input", [])
    elif name == "gemini":
        body.setdefault("contents", [])
    else:
        body.setdefault("messages", [{"role": "user", "content": "Hello"}])
    if name == "anthropic":
        body.setdefault("max_tokens", 10)
    return body
