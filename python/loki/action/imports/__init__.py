"""What files import, and which files of the project that is; pure, over paths and a function that reads.

`imports_of` extracts (Python, JavaScript, TypeScript, Go); `locate` and `resolve` say which files of the
project an import names. `Files` is the project: paths, and how to read one.
"""

from loki.action.imports.extraction import LANGUAGES, imports_of, language_of
from loki.action.imports.files import Files
from loki.action.imports.location import EXTERNAL, FOUND, MISSING, Location, locate, resolve
from loki.action.imports.statement import Import

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
