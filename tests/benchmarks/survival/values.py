"""Values that nobody can guess: seeded, and each used once in a thread."""

import random
import uuid
from collections.abc import Callable

ADJECTIVES = """
amber ashen brisk brittle candid cobalt copper coral crimson dapper dusky eager fabled feral frosted
gilded glassy hollow humble indigo ivory jagged jovial keen lilac limber lucid marbled mellow misty
nimble ochre opal pallid placid quaint quiet rustic saffron scarlet silken slender sombre spry
sturdy tawny tidal umber velvet wary willow zesty
""".split()
NOUNS = """
anvil basin beacon bellows bramble buckle burrow canopy cellar cinder cloister compass cradle
cypress dagger delta dynamo ember falcon ferry fjord flint gable garnet glacier granary harbour
hatch heron hinge inlet jetty kestrel lantern lattice ledger lichen locket mallard meadow mortar
nettle oriole otter paddock pebble pennant pulley quarry rafter ravine reef rivet saddle sextant
shutter sparrow spindle steeple tannery thicket thistle trellis turbine urchin vessel walnut wicket
""".split()
ROLES = (
    "queue store worker cache broker index schema mirror pipeline gateway ledger planner".split()
)
GIVEN = "mira jonas adele tariq ines oskar yuna paolo greta samir nadia edwin".split()
FAMILY = "halloran okafor lindqvist moreau ishida baranov castell dietrich nakata ferrante".split()
TEAMS = "OPS DATA PAY INFRA WEB MOB AUTH SRE".split()
MONTHS = "January March April June August September October November December".split()
CJK = "青森灯塔白鹭石桥琥珀松林银杏海雾星港云梯竹影玉兰铜铃"

Maker = Callable[[random.Random], str]


def phrase(rng: random.Random) -> str:
    """Plain words that no rule takes for a reference, such as "copper heron queue"."""
    return f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} {rng.choice(ROLES)}"


def digits(rng: random.Random, number: int) -> str:
    """A whole number of that many digits, the first of which is not 0."""
    return str(rng.randrange(10 ** (number - 1), 10**number))


def hexes(rng: random.Random, number: int) -> str:
    """That many hexadecimal digits, letters among them."""
    text = "".join(rng.choices("0123456789abcdef", k=number - 2))
    return text + rng.choice("abcdef") + rng.choice("0123456789")


def _path(rng: random.Random) -> str:
    first, second = rng.sample(NOUNS, 2)
    name = f"{second}_{hexes(rng, 4)}"
    return rng.choice([
        f"/srv/{first}/{rng.choice(ROLES)}/{name}.yaml",
        f"src/{first}/{name}.py",
        f"/var/lib/{first}-{digits(rng, 3)}/{name}.db",
        f"~/.config/{first}/{name}.toml",
        f"docs/{first}/{rng.choice(CJK)}{rng.choice(CJK)}_{hexes(rng, 4)}.md",
    ])  # fmt: skip


def _url(rng: random.Random) -> str:
    host = f"{rng.choice(NOUNS)}-{hexes(rng, 3)}"
    tail = f"{rng.choice(NOUNS)}/{digits(rng, 5)}"
    return rng.choice([
        f"https://{host}.example.net/{tail}",
        f"https://{host}.example.org/wiki/{tail}#{rng.choice(NOUNS)}",
        f"http://{host}.internal.example.com:{digits(rng, 4)}/{tail}?tab={rng.choice(NOUNS)}",
    ])  # fmt: skip


def _id(rng: random.Random) -> str:
    return rng.choice([
        hexes(rng, 12),
        hexes(rng, 40),
        str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        f"req_{hexes(rng, 10)}",
        f"i-{hexes(rng, 14)}",
    ])  # fmt: skip


def _ticket(rng: random.Random) -> str:
    return rng.choice([
        f"{rng.choice(TEAMS)}-{digits(rng, 5)}",
        f"{rng.choice(GIVEN)}.{rng.choice(FAMILY)}{digits(rng, 2)}@example.com",
        f"{rng.choice(NOUNS)}-oncall-{digits(rng, 3)}@lists.example.org",
    ])  # fmt: skip


def _version(rng: random.Random) -> str:
    plain = f"{digits(rng, 1)}.{digits(rng, 2)}.{digits(rng, 2)}"
    return rng.choice(
        [f"v{plain}", plain, f"v{plain}-rc.{digits(rng, 1)}", f"{plain}b{digits(rng, 1)}"]
    )


def _quantity(rng: random.Random) -> str:
    return rng.choice([
        f"{digits(rng, 3)} ms",
        f"{digits(rng, 2)}.{digits(rng, 2)} GB",
        f"{digits(rng, 2)}.{digits(rng, 2)}%",
        f"{digits(rng, 2)},{digits(rng, 3)} rows",
        f"{digits(rng, 4)} req/s",
        f"€{digits(rng, 2)},{digits(rng, 3)}",
    ])  # fmt: skip


def _date(rng: random.Random) -> str:
    year, day = rng.randrange(2031, 2068), rng.randrange(10, 29)
    return rng.choice([
        f"{year}-{rng.randrange(10, 13)}-{day}",
        f"{day} {rng.choice(MONTHS)} {year}",
        f"{year}-0{rng.randrange(1, 10)}-{day} {rng.randrange(10, 24)}:{rng.randrange(10, 60)}",
        f"{year}年{rng.randrange(1, 13)}月{day}日",
    ])  # fmt: skip


def _name(rng: random.Random) -> str:
    """A quoted name or an identifier of code; quotation marks are not part of it."""
    first, second, third = rng.sample(NOUNS, 3)
    return rng.choice([
        f"{first}_{second}_{rng.choice(ROLES)}",
        f"{first.title()}{second.title()}{rng.choice(ROLES).title()}",
        f"{first}.{second}_{third}()",
        f"{first.upper()}_{second.upper()}_{third.upper()}",
        f"Project {first.title()} {second.title()}",
    ])  # fmt: skip


MAKERS: dict[str, Maker] = {
    "path": _path,
    "url": _url,
    "id": _id,
    "ticket": _ticket,
    "version": _version,
    "quantity": _quantity,
    "date": _date,
    "name": _name,
}
"""How the value of a reference is made, by its kind."""
