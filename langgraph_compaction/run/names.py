"""What a chat model's name says, and what is wrong with it before anything is built.

Nothing is imported and no key is looked for here: a node may be made where there is neither.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib.util import find_spec

from langgraph_compaction.errors import ConfigurationError

FOREIGN = {
    "claude-": "anthropic",
    "command-": "cohere",
    "deepseek-": "deepseek",
    "gemini-": "google_genai",
    "grok-": "xai",
    "mistral-": "mistralai",
}
"""How bare names begin that OpenAI's API has never had, and whose they are. LangChain's own
``init_chat_model`` guesses the provider from them, so that its users write them bare."""
OWN_SERVER = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
"""Variables that send a ChatOpenAI to a server of anybody's, which may have models of any name."""
PROVIDERS = {
    "anthropic": "langchain_anthropic",
    "anthropic_bedrock": "langchain_aws",
    "azure_ai": "langchain_azure_ai",
    "azure_openai": "langchain_openai",
    "baseten": "langchain_baseten",
    "bedrock": "langchain_aws",
    "bedrock_converse": "langchain_aws",
    "cohere": "langchain_cohere",
    "deepseek": "langchain_deepseek",
    "fireworks": "langchain_fireworks",
    "google_anthropic_vertex": "langchain_google_vertexai",
    "google_genai": "langchain_google_genai",
    "google_vertexai": "langchain_google_vertexai",
    "groq": "langchain_groq",
    "huggingface": "langchain_huggingface",
    "ibm": "langchain_ibm",
    "litellm": "langchain_litellm",
    "mistralai": "langchain_mistralai",
    "nvidia": "langchain_nvidia_ai_endpoints",
    "ollama": "langchain_ollama",
    "openai": "langchain_openai",
    "openrouter": "langchain_openrouter",
    "perplexity": "langchain_perplexity",
    "together": "langchain_together",
    "upstage": "langchain_upstage",
    "xai": "langchain_xai",
}
"""Providers that ``init_chat_model`` documents, and the package of each. LangChain has no public
list of them. One that is missing here is left to LangChain, unless it looks like a slip of one."""


def has_provider(name: str) -> bool:
    """Whether a name is of the form ``provider:name``."""
    # A fine-tuned OpenAI model is named ft:base:organisation::id.
    return ":" in name and not name.startswith("ft:")


def check_name(name: str, parameter: str = "model") -> None:
    """Check what can be known of a model's name before the model is built.

    Args:
        name: as `named_model` takes it.
        parameter: what it was given as.

    Raises:
        ConfigurationError: it belongs to another provider than OpenAI and does not say so, or its
            provider is misspelt, or something that has to be installed is not.
    """
    if not has_provider(name):
        _check_bare(name, parameter)
        return
    if find_spec("langchain") is None:
        raise ConfigurationError(
            f"{parameter}: {name!r} names a provider, which takes the langchain extra: "
            'pip install "langgraph-compaction[langchain]". Without it, pass the name of an '
            "OpenAI model or a chat model object."
        )
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise ConfigurationError(
            f'{parameter}: {name!r} is no name; write "provider:name", such as '
            '"anthropic:claude-haiku-4-5".'
        )
    if provider not in PROVIDERS:
        near = get_close_matches(provider.lower(), PROVIDERS, n=1, cutoff=0.8)
        if near:
            raise ConfigurationError(
                f"{parameter}: {provider!r} in {name!r} is no provider that LangChain is known to "
                f'have; did you mean "{near[0]}:{model}"? If it is right, pass the chat model '
                "itself."
            )
        return
    package = PROVIDERS[provider]
    if find_spec(package) is None:
        raise ConfigurationError(
            f"{parameter}: {name!r} takes a package that is not installed: "
            f"pip install {package.replace('_', '-')}."
        )


def _check_bare(name: str, parameter: str) -> None:
    provider = next((found for begin, found in FOREIGN.items() if name.startswith(begin)), None)
    if provider is None or any(os.environ.get(variable) for variable in OWN_SERVER):
        return
    raise ConfigurationError(
        f"{parameter}: {name!r} would be asked of OpenAI, as every name without a provider, and "
        f'is none of its models. Write "{provider}:{name}" (with the langchain extra), or pass '
        "the chat model itself. If a server of your own has it, set OPENAI_API_BASE."
    )
