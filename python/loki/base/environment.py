"""What programs that loki starts know of its environment: no secrets that are not passed on purpose.

Tests: ``tests/py/base/test_secret.py``;
with real programs ``tests/system/processes/together/test_environment.py``.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping

from loki.base.secret import holds_secret, knowledge


def is_secret_name(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret.

    Example:
        >>> [is_secret_name(name) for name in ("GITHUB_TOKEN", "PATH", "PWD", "api_key")]
        [True, False, False, True]
    """
    return bool(knowledge().names.search(name))


def clean_environment(environment: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """An environment without the variables whose names or values look like secrets.

    Args:
        environment: names and values.
        passed: names, or globs of names, that stay although they look like secrets.

    Example:
        >>> clean_environment({"CI": "1", "DB": "postgres://me:hunter2@db/x", "API_KEY": "a"}, ["API_*"])
        {'CI': '1', 'API_KEY': 'a'}
    """
    kept = passed_environment(environment, passed)
    return {
        name: value
        for name, value in environment.items()
        if name in kept or not (is_secret_name(name) or holds_secret(value))
    }


def passed_environment(environment: Mapping[str, str], passed: Iterable[str]) -> dict[str, str]:
    """The variables of an environment that are passed on purpose.

    Args:
        environment: names and values.
        passed: names, or globs of names.

    Example:
        >>> passed_environment({"CI": "1", "API_KEY": "a"}, ["API_*"])
        {'API_KEY': 'a'}
    """
    globs = tuple(passed)
    return {
        name: value
        for name, value in environment.items()
        if any(fnmatch.fnmatchcase(name, glob) for glob in globs)
    }
