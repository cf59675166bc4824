"""What is given to a node, checked: settings, counter, the agent's tools and prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from langchain_core.messages import SystemMessage

from langgraph_compaction.errors import ConfigurationError, shortened
from langgraph_compaction.files import FileSettings, load_settings, of_file, without_named
from langgraph_compaction.levels import Levels
from langgraph_compaction.plan.counting import TokenCounter, token_counter
from langgraph_compaction.plan.pins import pinned_tools
from langgraph_compaction.plan.recalling import long_pages, tool_mismatch
from langgraph_compaction.plan.requests import REQUEST_KEY
from langgraph_compaction.plan.schemas import checked_tools
from langgraph_compaction.plan.tool_names import unknown_names
from langgraph_compaction.resolving import AgentLimits
from langgraph_compaction.run.models import model_name
from langgraph_compaction.setting_names import IN_FILES
from langgraph_compaction.settings import NAMES, CompactionSettings, divided
from langgraph_compaction.state import COMPACTION_KEY, MESSAGES_KEY, SETTINGS_KEY, Channels

_CHANNELS = (MESSAGES_KEY, COMPACTION_KEY, SETTINGS_KEY, "llm_input_messages")
"""What the channels of a node are called, as a rule."""


def loaded(given: Any) -> Any:
    """What is given as settings; of the path of a file what it says.

    Raises:
        ConfigurationError: as `load_settings`.
    """
    return load_settings(given) if isinstance(given, str | PathLike) else given


def settings_levels(
    given: Any, values: Mapping[str, Any], node: str, limits: AgentLimits
) -> tuple[CompactionSettings, Levels]:
    """The node's own settings, and the levels on top of them.

    Code is the weakest level: by name over a `CompactionSettings` or a mapping. Over it a file.
    """
    if not isinstance(given, FileSettings):
        settings = _settings(given).changed(values)
        return settings, Levels(settings, node=node, limits=limits)
    in_code = CompactionSettings.of(values)
    with of_file(given.source):
        general, own = map(without_named, divided(given, node))
        settings = in_code.changed(general).changed(own)
        return settings, Levels(settings, node=node, limits=limits)


def chosen_counter(given: Any, settings: Any, node: str) -> Any:
    """What is to count tokens: as of every setting, a file wins over code, and a name over others.

    Args:
        given: the node's own ``token_counter``.
        settings: what `loaded` returned.
        node: the node's name.
    """
    if isinstance(settings, FileSettings):
        general, own = divided(settings, node)
        return {"token_counter": given, **general, **own}["token_counter"]
    if given is None and isinstance(settings, Mapping):
        return settings.get("token_counter")
    return given


def _settings(given: Any) -> CompactionSettings:
    if isinstance(given, CompactionSettings):
        return given
    if given is None or isinstance(given, Mapping):
        # A preset has its counter among its settings, see `chosen_counter`.
        return CompactionSettings.of(
            {key: value for key, value in (given or {}).items() if key != "token_counter"}
        )
    raise ConfigurationError(
        f"settings: {given!r} has to be a CompactionSettings, a mapping of its values, such as "
        '{"trigger": ["fraction", 0.8]}, or the path of a settings file.'
    )


def checked_name(given: Any) -> str:
    """The name of a node.

    Raises:
        ConfigurationError: it is none, or cannot stand among settings.
    """
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(
            f'name: {shortened(given)} has to be the node\'s name in the graph, such as "compact".'
        )
    if given == REQUEST_KEY or given in (*NAMES, *IN_FILES):
        raise ConfigurationError(
            f"name: a node cannot be called {given!r}: among settings its own stand under its "
            f"name, beside {REQUEST_KEY!r} and the settings for all. Choose another."
        )
    return given


def checked_target(parameter: str, given: Any, what: str) -> str:
    """The name of the node to go to.

    Args:
        parameter: what was given, as errors name it.
        given: the name.
        what: which node is meant, and what else one may do.

    Raises:
        ConfigurationError: it is none.
    """
    if isinstance(given, str) and given.strip():
        return given
    raise ConfigurationError(
        f"{parameter}: {shortened(given)} is no name of a node. Pass the name of the node {what}"
    )


def checked_channels(messages: Any, compaction: Any, settings: Any, output: Any) -> Channels:
    """The channels of a node, by what was given as ``messages_key`` and so on.

    Raises:
        ConfigurationError: one is no name, or names a channel that another one has.
    """
    given = {
        "messages_key": messages,
        "compaction_key": compaction,
        "settings_key": settings,
        "output_messages_key": output,
    }
    taken: dict[str, str] = {}
    for (parameter, name), example in zip(given.items(), _CHANNELS, strict=True):
        if parameter == "output_messages_key" and name is None:
            continue
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(
                f"{parameter}: {shortened(name)} has to be the name of a channel of its own, such "
                f'as "{example}".'
            )
        if name in taken:
            raise ConfigurationError(
                f"{parameter}: {name!r} is the {taken[name]}, too. Each has to be the name of a "
                "channel of its own."
            )
        taken[name] = parameter
    return Channels(messages, compaction, settings, output)


def tool_schemas(given: Any, settings: CompactionSettings) -> list[dict[str, Any]]:
    """Schemas of the agent's tools.

    Args:
        given: the tools.
        settings: the node's own settings.

    Raises:
        ConfigurationError: something among them is no tool, or none is the one that
            ``recall_tool`` names.
    """
    schemas = checked_tools(given)
    mismatch = tool_mismatch(settings.recall_tool, given) if schemas else None
    if mismatch and settings.recall_tool is not None:
        raise ConfigurationError(mismatch)
    return schemas


def tool_warnings(
    settings: CompactionSettings, tools: Sequence[Any], most: int | None
) -> list[str]:
    """What in a node's settings does not match the agent's tools.

    Args:
        settings: the node's own settings.
        tools: the tools.
        most: tokens that the results of one step may have; None: any number.
    """
    # These do no harm where they name no tool, and other agents of the thread may have them.
    named = {
        "protected_tools": settings.protected_tools,
        "pinned": pinned_tools(settings.pinned),
    }
    mismatch = tool_mismatch(settings.recall_tool, tools)
    found = (mismatch, long_pages(tools, most), *unknown_names(named, tools))
    return [warning for warning in found if warning]


def counter_for(given: Any, agent_model: Any) -> TokenCounter:
    """What counts tokens: what was given, else by the agent's model.

    Raises:
        ConfigurationError: what was given cannot count.
    """
    if given is not None and not (isinstance(given, str | TokenCounter) or callable(given)):
        raise ConfigurationError(
            f'token_counter: {given!r} is neither a name such as "tiktoken" nor a callable from '
            "a list of messages to tokens."
        )
    name = None if agent_model is None else model_name(agent_model)
    return token_counter(given, model_name=name)


def system_message(system: Any) -> SystemMessage:
    """An agent's prompt as a message.

    Raises:
        ConfigurationError: it is neither text nor a SystemMessage.
    """
    if not isinstance(system, str | SystemMessage):
        raise ConfigurationError(
            f"system: {system!r} is neither text nor a SystemMessage. Pass the agent's prompt."
        )
    return SystemMessage(content=system) if isinstance(system, str) else system
