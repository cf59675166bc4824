"""What is given to a node, checked: settings, counter, the agent's tools and prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from langchain_core.messages import SystemMessage

from langgraph_compaction.errors import ConfigurationError
from langgraph_compaction.files import FileSettings, load_settings, of_file, without_named
from langgraph_compaction.levels import Levels
from langgraph_compaction.plan.counting import TokenCounter, token_counter
from langgraph_compaction.plan.pins import pinned_tools
from langgraph_compaction.plan.recalling import long_pages, tool_mismatch
from langgraph_compaction.plan.schemas import checked_tools
from langgraph_compaction.plan.tool_names import unknown_names
from langgraph_compaction.resolving import AgentLimits
from langgraph_compaction.run.models import model_name
from langgraph_compaction.run.reporting import logger
from langgraph_compaction.settings import CompactionSettings, divided


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


def checked_output_key(given: Any, taken: Sequence[str]) -> str | None:
    """The channel for the view.

    Raises:
        ConfigurationError: it is no name, or the node reads that channel.
    """
    if given is None or (isinstance(given, str) and given and given not in taken):
        return given
    raise ConfigurationError(
        f"output_messages_key: {given!r} has to be the name of a channel of its own, such as "
        f'"llm_input_messages", and none of {", ".join(map(repr, taken))}.'
    )


def tool_schemas(
    given: Any, settings: CompactionSettings, most: int | None
) -> list[dict[str, Any]]:
    """Schemas of the agent's tools; what in the settings does not match them is logged.

    Args:
        given: the tools.
        settings: the node's own settings.
        most: tokens that the results of one step may have; None: any number.

    Raises:
        ConfigurationError: something among them is no tool, or none is the one that
            ``recall_tool`` names.
    """
    schemas = checked_tools(given)
    if not schemas:
        return schemas
    mismatch = tool_mismatch(settings.recall_tool, given)
    if mismatch and settings.recall_tool is not None:
        raise ConfigurationError(mismatch)
    for warning in tool_warnings(settings, given, most):
        logger.warning(warning)
    return schemas


def tool_warnings(
    settings: CompactionSettings, tools: Sequence[Any], most: int | None
) -> list[str]:
    """What in a node's settings does not match the agent's tools; arguments as `tool_schemas`."""
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
