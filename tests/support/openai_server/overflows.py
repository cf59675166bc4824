"""Context overflow, in the words and the shape of each provider."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.openai_server.cases import status
from tests.support.openai_server.server import Case, Exchange
from tests.support.openai_server.wire import Json, Message, response_body


def _midway(code: int, error: Json) -> Case:
    """An error in the middle of a stream; a whole answer has the status and the error as body."""

    def case(exchange: Exchange) -> None:
        if not exchange.streamed:
            exchange.send(code, {"error": error}, {})
            return
        exchange.stream()
        exchange.events(exchange.wire(Message()).opening)
        exchange.events([{"type": "error", "error": error}])
        exchange.end()

    return case


def _failed(code: int, error: Json) -> Case:
    """A response of status "failed". Chat Completions have none: they answer as `status` does."""

    def case(exchange: Exchange) -> None:
        failed = response_body(exchange.body, exchange.number, "failed", error=error)
        if not exchange.responses_api:
            exchange.send(code, {"error": error}, {})
        elif not exchange.streamed:
            exchange.send(200, failed, {})
        else:
            exchange.stream()
            exchange.events(exchange.wire(Message()).opening)
            exchange.events([{"type": "response.failed", "response": failed}])
            exchange.end()

    return case


_SHAPES: dict[str, Callable[[int, Json], Case]] = {
    "error": lambda code, error: status(code, {"error": error}),
    "list": lambda code, error: status(code, [{"error": error}]),
    "top": status,
    "word": lambda code, error: status(code, {"error": error.pop("message"), **error}),
    "midway": _midway,
    "failed": _failed,
}


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return written


def _table(written: str) -> dict[str, Case]:
    """Cases from lines "name: status shape key=value ... # source", each with its message below."""
    cases = {}
    for head, below in re.findall(r"^(\S.*)\n((?: .*\n)+)", written, re.MULTILINE):
        name, _, rest = head.partition(" # ")[0].partition(": ")
        code, shape, *pairs = rest.split()
        fields = {key: _value(value) for key, _, value in (pair.partition("=") for pair in pairs)}
        cases[name] = _SHAPES[shape](int(code), {"message": " ".join(below.split()), **fields})
    return cases


# Each as users of the provider reported it; the sources that no line has room for:
# assafelovic/gpt-researcher#680, cline/cline#5474, anomalyco/opencode#6071 (window and midway),
# Azure/azure-sdk-for-net#41892, llmmllab/llmmllab-api#188, ggml-org/llama.cpp#15780,
# OpenHands/OpenHands#1902 (Groq); for Mistral, and for Cerebras without a body, the patterns of
# badlogic/pi-mono, packages/ai/src/utils/overflow.ts. The proxy's page is nginx's.
OVERFLOWS = _table("""\
openai: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    This model's maximum context length is 128000 tokens. However, your messages resulted in 192041
    tokens. Please reduce the length of the messages.
openai input: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650
    tokens. Please reduce the length of the messages.
openai window: 400 error type=invalid_request_error param=input code=context_length_exceeded
    Your input exceeds the context window of this model. Please adjust your input and try again.
openai midway: 400 midway type=invalid_request_error param=input code=context_length_exceeded
    Your input exceeds the context window of this model. Please adjust your input and try again.
openai failed: 400 failed code=context_length_exceeded # james-6-23/codex2api#310
    Your input exceeds the context window of this model. Please adjust your input and try again.
azure: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    This model's maximum context length is 32768 tokens. However, you requested 35969 tokens (9969
    in the messages, 26000 in the completion). Please reduce the length of the messages or
    completion.
llama.cpp: 400 error code=400 type=exceed_context_size_error n_prompt_tokens=120737 n_ctx=100096
    request (120737 tokens) exceeds the available context size (100096 tokens), try increasing it
llama.cpp 500: 500 error code=500 type=exceed_context_size_error n_prompt_tokens=1407 n_ctx=256
    the request exceeds the available context size. try increasing the context size or enable
    context shift
vllm: 400 error type=BadRequestError param=input_tokens code=400 # vllm-project/vllm#33425
    This model's maximum context length is 2048 tokens. However, your request has 2500 input tokens.
    Please reduce the length of the input messages. (parameter=input_tokens, value=2500)
vllm top: 400 top object=error type=BadRequestError param=null code=400 # vllm-project/vllm#20409
    This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591
    in the messages, 10000 in the completion). Please reduce the length of the messages or
    completion. None
sglang: 400 top object=error type=BadRequestError param=null code=400 # QwenLM/Qwen3#1321
    The input (61709 tokens) is longer than the model's context length (40960 tokens).
anthropic: 400 error type=invalid_request_error # anthropics/claude-code#62560
    prompt is too long: 211180 tokens > 200000 maximum
anthropic output: 400 error type=invalid_request_error # anthropics/claude-code#408
    input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease input
    length or `max_tokens` and try again
anthropic size: 413 error type=request_too_large # anthropics/anthropic-sdk-python#938
    Request exceeds the maximum size
gemini: 400 error code=400 status=INVALID_ARGUMENT # google-gemini/gemini-cli#4231
    The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).
gemini list: 400 list code=400 status=INVALID_ARGUMENT # google-gemini/gemini-cli#6678
    The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).
mistral: 400 top object=error type=invalid_request_invalid_args param=null code="3051"
    Prompt contains 159202 tokens and 0 draft tokens, too large for model with 131072 maximum
    context length
bedrock: 400 top # aws-samples/assessment-generator#2
    Input is too long for requested model.
together: 400 error type=invalid_request_error param=max_tokens code=null # BerriAI/litellm#4934
    Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125
    `inputs` tokens and 4096 `max_new_tokens`
deepseek: 400 error type=invalid_request_error code=invalid_request_error # bytedance/deer-flow#66
    This model's maximum context length is 65536 tokens. However, you requested 87731 tokens (87731
    in the messages, 0 in the completion). Please reduce the length of the messages or completion.
groq: 400 error type=invalid_request_error param=messages code=context_length_exceeded
    Please reduce the length of the messages or completion.
cerebras: 400 error # cline/cline#5140
    Please reduce the length of the messages or completion. Current length is 42328 while limit is
    40000
xai: 400 word # cline/cline#3120
    This model's maximum prompt length is 131072 but the request contains 136973 tokens.
openrouter: 400 error code=400 metadata={"provider_name":null} # earendil-works/pi#6378
    This endpoint's maximum context length is 262000 tokens. However, you requested about 263390
    tokens (658 of text input, 732 of tool input, 262000 in the output). Please reduce the length of
    either one.
openrouter 200: 200 midway code=400 metadata={"provider_name":"Chutes"} # Aider-AI/aider#3721
    This endpoint's maximum context length is 131072 tokens. However, you requested about 141607
    tokens (10535 of text input, 131072 in the output). Please reduce the length of either one.
lm studio: 400 word # Gitlawb/openclaude#353
    The number of tokens to keep from the initial prompt is greater than the context length (n_keep:
    13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter
    input.
lm studio midway: 400 midway # lmstudio-ai/lmstudio-bug-tracker#2322
    The number of tokens to keep from the initial prompt is greater than the context length.
moonshot: 400 error type=invalid_request_error # MoonshotAI/kimi-cli#2011
    Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)
dashscope: 400 error type=invalid_request_error code=invalid_parameter_error # QwenPaw#6255
    <400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]
minimax: 400 error type=bad_request_error http_code="400" # rowboatlabs/rowboat#514
    invalid params, context window exceeds limit (2013)
copilot: 400 error code=model_max_prompt_tokens_exceeded # microsoft/copilot-intellij-feedback#94
    prompt token count of 138898 exceeds the limit of 64000
litellm: 400 error type=null param=null code="400" # OpenHands/OpenHands#5350
    litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError -
    {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 209303
    tokens > 200000 maximum"}}
""")
OVERFLOWS["cerebras no body"] = status(413)
OVERFLOWS["proxy"] = status(413, "<html><h1>413 Request Entity Too Large</h1></html>")

LOOKALIKES = _table("""\
output limit: 400 error type=invalid_request_error param=max_tokens code=null # NextChat#3195
    max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you
    provided 8192.
long parameter: 400 error type=invalid_request_error param=user code=string_above_max_length
    Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with
    length 100 instead.
rate: 413 error type=tokens code=rate_limit_exceeded # ITSpecialist111/ai_automation_suggester#61
    Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 6000,
    Requested 14810, please reduce your message size and try again.
""")
"""Errors that speak of tokens or lengths, and are no context overflow."""


def overflow(shape: str) -> Case:
    """A context overflow; `OVERFLOWS` has the names."""
    return OVERFLOWS[shape]
