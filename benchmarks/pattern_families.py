"""Cases about pattern sets: match and compile."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import Mix
from benchmarks.job import Data, Family, Job
from benchmarks.text_families import Parameters, chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scoring import Scores

SIXTY = Path(__file__).with_name("patterns.yml")
SIGNALS_OF_ONE = 3


def document(parameters: Parameters, data: Data) -> dict[str, Any]:
    """The pattern file that a case names: "built-in", "sixty", or a number of generated patterns."""
    import yaml

    from loki.recognition import builtin

    name = parameters["patterns"]
    if name == "built-in":
        return dict(builtin.patterns())
    if name == "sixty":
        return dict(yaml.safe_load(SIXTY.read_bytes()))
    return generated(int(name), data.logs, parameters.get("seed", 1))


def generated(count: int, logs: list[str], seed: int) -> dict[str, Any]:
    """So many patterns of three signals; one signal in a hundred is a phrase of the logs."""
    from benchmarks import corpus

    mix, phrases = Mix(seed), _phrases(tuple(logs[:20]), seed)
    words = corpus.words()

    def word() -> str:
        return words[mix.below(len(words))]

    def signal() -> dict[str, Any]:
        kind = mix.below(10)
        if phrases and mix.below(100) == 0:
            return {"literal": phrases[mix.below(len(phrases))]}
        if kind < 5:
            return {"literal": f"{word()} {word()} failed"}
        if kind < 7:
            return {"word": f"{word().title()}{word().title()}Error"}
        if kind < 9:
            return {"regex": rf"(?i)cannot (?:find|open) {word()} \d+ of {word()}", "w": 0.5}
        return {"any": [{"literal": f"no such {word()}"}, {"word": word() + word()}], "w": "weak"}

    return {
        "version": 2,
        "patterns": [
            {
                "id": f"generated-{n}",
                "description": "for measuring",
                "strategy": "analyze_then_fix",
                "signals": [signal() for _ in range(SIGNALS_OF_ONE)],
            }
            for n in range(count)
        ],
    }


@cache
def _phrases(logs: tuple[str, ...], seed: int) -> list[str]:
    """Neighbouring words of lines: letters and spaces only."""
    mix, found = Mix(seed + 1), set()
    for text in logs:
        for line in text.splitlines()[:: 1 + len(text) // 20_000]:
            parts = line.split(" ")
            at = mix.below(len(parts))
            phrase = " ".join(parts[at : at + 3])
            if len(phrase) > 8 and phrase.isascii() and phrase.replace(" ", "").isalpha():
                found.add(phrase)
    return sorted(found)


def _cleaned(parameters: Parameters, data: Data) -> list[bytes]:
    """All get cleaned bytes: so the peers need not clean, while loki cleans once more."""
    import loki

    return [loki.clean(text).encode() for text in chosen(parameters, data)]


def _match_loki(parameters: Parameters, data: Data) -> Job:
    import loki

    known, texts = loki.PatternSet(document(parameters, data)), _cleaned(parameters, data)
    return Job(
        lambda: [known.match(text) for text in texts], sum(map(len, texts)), _plain, len(texts)
    )


def _plain(returned: list[list[Any]]) -> list[Scores]:
    return [
        sorted((match.pattern, match.confidence, match.coverage) for match in matches)
        for matches in returned
    ]


def _without_confidence(returned: list[Scores]) -> list[list[Any]]:
    return [[(pattern, None, coverage) for pattern, _, coverage in scores] for scores in returned]


def _match_peer(
    name: str, answer: Callable[[Any], Any] = list
) -> Callable[[Parameters, Data], Job]:
    def ready(parameters: Parameters, data: Data) -> Job:
        from benchmarks import peers

        texts = _cleaned(parameters, data)
        matcher = getattr(peers, name)(document(parameters, data))
        return Job(
            lambda: [matcher.match(text) for text in texts],
            sum(map(len, texts)),
            answer,
            len(texts),
        )

    return ready


def _scan_only(parameters: Parameters, data: Data) -> Job:
    from benchmarks import peers

    texts = _cleaned(parameters, data)
    matcher = peers.AhoCorasickAndRe2(document(parameters, data))
    return Job(lambda: [matcher.literals(text) for text in texts], sum(map(len, texts)), _nothing)


def _nothing(_: Any) -> None:
    """What a scan alone answers."""


def scores_agree(mine: list[Any], other: list[Any]) -> float:
    """The share of texts with the same patterns, confidences and coverages.

    Hyperscan does not say where its hits begin, so that it cannot tell which are nested in others:
    it states no confidence, and what it finds beyond loki's matches does not count against it.
    """
    equal = 0
    for a, b in zip(mine, other, strict=True):
        theirs = {pattern: (confidence, coverage) for pattern, confidence, coverage in b}
        bare = any(confidence is None for confidence, _ in theirs.values())
        ours = {p: (None if bare else confidence, coverage) for p, confidence, coverage in a}
        equal += ours.items() <= theirs.items() if bare else ours == theirs
    return equal / len(mine)


def _compile(
    make: Callable[[dict[str, Any]], Any], answer: Callable[[Any], Any] = list
) -> Callable[[Parameters, Data], Job]:
    """The set that was compiled is asked about a text that holds many signals."""

    def ready(parameters: Parameters, data: Data) -> Job:
        read = document(parameters, data)
        signals = [signal for pattern in read["patterns"] for signal in pattern["signals"]]
        probe = "\n".join(signal["literal"] for signal in signals if "literal" in signal).encode()
        return Job(lambda: make(read), len(signals), lambda known: answer([known.match(probe)]))

    return ready


def _set(read: dict[str, Any]) -> Any:
    import loki

    return loki.PatternSet(read)


def _load(parameters: Parameters, data: Data) -> Job:
    import yaml

    import loki

    text = yaml.safe_dump(document(parameters, data))
    return _compile(lambda _: loki.PatternSet.loads(text), _plain)(parameters, data)


def _peer(name: str) -> Callable[[dict[str, Any]], Any]:
    def make(read: dict[str, Any]) -> Any:
        from benchmarks import peers

        return getattr(peers, name)(read)

    return make


AHO_RE2 = "ahocorasick_rs + google-re2"
MATCH = Family(
    "bytes",
    {
        "loki": _match_loki,
        AHO_RE2: _match_peer("AhoCorasickAndRe2"),
        "hyperscan": _match_peer("Hyperscan", _without_confidence),
        "ahocorasick_rs, literals only": _scan_only,
    },
    scores_agree,
)
COMPILE = Family(
    "signals",
    {
        "loki": _compile(_set, _plain),
        AHO_RE2: _compile(_peer("AhoCorasickAndRe2")),
        "hyperscan": _compile(_peer("Hyperscan"), _without_confidence),
        "loki, from YAML": _load,
    },
    scores_agree,
)
