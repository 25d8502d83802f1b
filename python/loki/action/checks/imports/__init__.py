"""What files import, and which files of the project that is; pure, over paths and a function that reads.

`imports_of` extracts (Python, JavaScript, TypeScript, Go); `locate` and `resolve` say which files of the
project an import names. `Files` is the project: paths, and how to read one.
"""

from loki.action.checks.imports.import_extraction import LANGUAGES, imports_of, language_of
from loki.action.checks.imports.import_location import (
    EXTERNAL,
    FOUND,
    MISSING,
    Location,
    locate,
    resolve,
)
from loki.action.checks.imports.project_files import Files, Import

__all__ = [
    "EXTERNAL",
    "FOUND",
    "LANGUAGES",
    "MISSING",
    "Files",
    "Import",
    "Location",
    "imports_of",
    "language_of",
    "locate",
    "resolve",
]
