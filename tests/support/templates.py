"""Chat templates that refuse what does not take turns, and the same rules as a checker.

The rules are those that the published templates of these models raise on. What the templates make
of a conversation is of no interest here, so these write every message in the same plain way.
"""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages

_TURNS = "Conversation roles must alternate user/assistant/user/assistant/..."
_WRITTEN = "{{ '[' + message['role'] + '] ' + (message['content'] or '') + '\\n' }}"

_PROMPT = """\
{%- if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + '\\n' }}
{%- set turns = messages[1:] %}{%- else %}{%- set turns = messages %}{%- endif %}
"""

LLAMA_2 = f"""{_PROMPT}
{{%- for message in turns %}}
{{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}}
{{{{ raise_exception('{_TURNS}') }}}}
{{%- endif %}}
{_WRITTEN}
{{%- endfor %}}"""
"""A system message, then user and assistant in turns. Mistral 7B's first template is the same
without a system message."""

GEMMA = f"""\
{{%- if messages[0]['role'] == 'system' %}}
{{{{ raise_exception('System role not supported') }}}}
{{%- endif %}}
{LLAMA_2}"""
"""No system message."""

MISTRAL_3 = f"""{_PROMPT}
{{%- set ns = namespace(index=0, before='') %}}
{{%- for message in turns %}}
{{%- if message['role'] == 'user' and ns.before == 'tool' %}}
{{{{ raise_exception('Unexpected role user after role tool') }}}}
{{%- endif %}}
{{%- if message['role'] not in ['user', 'assistant', 'tool'] %}}
{{{{ raise_exception('Only user, assistant and tool roles are supported!') }}}}
{{%- endif %}}
{{%- if not (message['role'] == 'tool' or message['tool_calls']) %}}
{{%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}}
{{{{ raise_exception('{_TURNS}') }}}}
{{%- endif %}}
{{%- set ns.index = ns.index + 1 %}}
{{%- endif %}}
{{%- set ns.before = message['role'] %}}
{_WRITTEN}
{{%- endfor %}}"""
"""With tools: calls and results stand beside the turns, and no user message right behind a result,
as Mistral's API has it."""

TEMPLATES = {"Llama 2": LLAMA_2, "Gemma": GEMMA, "Mistral 3": MISTRAL_3}


def turn_fault(messages: Sequence[BaseMessage], *, tools: bool = False) -> str | None:
    """What a strict template refuses in a list of messages, None where it takes it.

    Args:
        messages: the list.
        tools: whether it knows calls and results, as `MISTRAL_3` does.
    """
    roles = [message["role"] for message in convert_to_openai_messages(list(messages))]
    # langchain-openai sends invalid calls, too.
    calls = [
        isinstance(m, AIMessage) and bool(m.tool_calls + m.invalid_tool_calls) for m in messages
    ]
    start = int(roles[:1] == ["system"])
    turn, before = 0, ""
    for place in range(start, len(roles)):
        role = roles[place]
        if role not in {"user", "assistant", *(["tool"] if tools else [])}:
            return f"{role} at {place}"
        if role == "user" and before == "tool":
            return f"user right behind a result, at {place}"
        if role == "tool" and not (before == "tool" or calls[place - 1]):
            return f"result without a call, at {place}"
        before = role
        if tools and (role == "tool" or calls[place]):
            continue
        if (role == "user") != (turn % 2 == 0):
            return f"{role} out of turn, at {place}"
        turn += 1
    return None
