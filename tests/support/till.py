"""One small real project in four languages: a till with a wrong total, and a receipt that uses it.

Each has a module `money` whose function `total` is wrong and whose function `rounded` is right, tests
of it, and a module `receipt` that imports `money` and has tests of its own that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.toolchain import need, need_node_modules

Files = Mapping[str, "str | None"]


@dataclass(frozen=True)
class Till:
    """The project in one language, and what agents do to it.

    Attributes:
        files: the project.
        check: runs all tests; narrow: those of `money` alone.
        fixed: makes `total` right.
        wrong: two different changes that leave it wrong.
        broken: a proposal that does not parse.
        breaks: makes `total` right, and `rounded` another thing than `receipt` expects.
        gone: deletes the failing test; skipped: marks it as skipped.
        prepare: makes ready what the files alone do not.
    """

    name: str
    files: Files
    check: str
    narrow: str
    fixed: Files
    wrong: tuple[Files, Files]
    broken: Files
    breaks: Files
    gone: Files
    skipped: Files
    prepare: Callable[[Path], None] = field(default=lambda _: None)

    def make(self, root: Path) -> Path:
        """Write the project to a folder that does not exist yet."""
        for path, content in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content or "")
        self.prepare(root)
        return root


# --- Python ---------------------------------------------------------------------------------------------

_PY = "def total(prices):\n    {total}\n\n\ndef rounded(amount):\n    {rounded}\n"
_PY_TEST = "from money import total\n\n\n{mark}def test_total():\n    assert total([1, 2, 3]) == 6\n\n\ndef test_nothing():\n    assert total([]) == 0\n"


def _py(total: str, rounded: str = "return round(amount, 2)") -> dict[str, str | None]:
    return {"money.py": _PY.format(total=total, rounded=rounded)}


PYTHON = Till(
    "python",
    {
        **_py("return sum(prices[1:])"),
        "test_money.py": _PY_TEST.format(mark=""),
        "receipt.py": 'from money import rounded\n\n\ndef line(amount):\n    return f"{rounded(amount):.2f} EUR"\n',
        "test_receipt.py": 'from receipt import line\n\n\ndef test_line():\n    assert line(1.239) == "1.24 EUR"\n',
    },
    "python -m pytest -q -p no:cacheprovider",
    "python -m pytest -q -p no:cacheprovider test_money.py",
    _py("return sum(prices)"),
    (_py("return sum(prices[2:])"), _py("return sum(prices[:1])")),
    _py("return sum(prices"),
    _py("return sum(prices)", "return str(amount)"),
    {"test_money.py": "from money import total\n\n\ndef test_nothing():\n    assert total([]) == 0\n"},
    {"test_money.py": _PY_TEST.format(mark='@pytest.mark.skip(reason="later")\n').replace("from money", "import pytest\nfrom money")},
)  # fmt: skip

# --- TypeScript -------------------------------------------------------------------------------------------

_TS = "export function total(prices: number[]): number {{\n  {total}\n}}\n\nexport function rounded(amount: number): {kind} {{\n  {rounded}\n}}\n"
_TS_TEST = "import {{ expect, test }} from 'vitest';\nimport {{ total }} from './money';\n\ntest{mark}('adds all prices', () => {{\n  expect(total([1, 2, 3])).toBe(6);\n}});\n\ntest('nothing costs nothing', () => {{\n  expect(total([])).toBe(0);\n}});\n"


def _ts(
    total: str, rounded: str = "return Math.round(amount * 100) / 100;", kind: str = "number"
) -> dict[str, str | None]:
    return {"src/money.ts": _TS.format(total=total, rounded=rounded, kind=kind)}


def _link_node_modules(root: Path) -> None:
    (root / "node_modules").symlink_to(need_node_modules("vitest", "typescript"))


_SUM = "return prices.reduce((sum, price) => sum + price, 0);"
TYPESCRIPT = Till(
    "typescript",
    {
        "package.json": '{"name": "till", "private": true, "type": "module", "scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "*", "typescript": "*"}}\n',
        "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, "module": "esnext", "moduleResolution": "bundler", "skipLibCheck": true}, "include": ["src"]}\n',
        **_ts(_SUM.replace("prices.", "prices.slice(1).")),
        "src/money.test.ts": _TS_TEST.format(mark=""),
        "src/receipt.ts": "import { rounded } from './money';\n\nexport function line(amount: number): string {\n  return `${rounded(amount).toFixed(2)} EUR`;\n}\n",
        "src/receipt.test.ts": "import { expect, test } from 'vitest';\nimport { line } from './receipt';\n\ntest('a line', () => {\n  expect(line(1.239)).toBe('1.24 EUR');\n});\n",
    },
    "npm test",
    "npx vitest run src/money.test.ts",
    _ts(_SUM),
    (_ts(_SUM.replace("prices.", "prices.slice(2).")), _ts("return prices.length;")),
    _ts("return prices.reduce((sum, price => sum + price, 0);"),
    _ts(_SUM, "return String(amount);", "string"),
    {"src/money.test.ts": "import { expect, test } from 'vitest';\nimport { total } from './money';\n\ntest('nothing costs nothing', () => {\n  expect(total([])).toBe(0);\n});\n"},
    {"src/money.test.ts": _TS_TEST.format(mark=".skip")},
    _link_node_modules,
)  # fmt: skip

# --- Go -----------------------------------------------------------------------------------------------------

_GO = 'package money\n\nimport "math"\n\nfunc Total(prices []float64) float64 {{\n\tsum := 0.0\n\t{total}\n\treturn sum\n}}\n\nfunc Rounded(amount float64) float64 {{\n\t{rounded}\n}}\n'
_GO_TEST = 'package money\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {{\n\t{mark}if got := Total([]float64{{1, 2, 3}}); got != 6 {{\n\t\tt.Errorf("Total = %v, want 6", got)\n\t}}\n}}\n\nfunc TestNothing(t *testing.T) {{\n\tif got := Total(nil); got != 0 {{\n\t\tt.Errorf("Total = %v, want 0", got)\n\t}}\n}}\n'


def _go(total: str, rounded: str = "return math.Round(amount*100) / 100") -> dict[str, str | None]:
    loop = f"for _, price := range {total} {{\n\t\tsum += price\n\t}}"
    return {"money/money.go": _GO.format(total=loop, rounded=rounded)}


GO = Till(
    "go",
    {
        "go.mod": "module example.com/till\n\ngo 1.21\n",
        **_go("prices[min(1, len(prices)):]"),
        "money/money_test.go": _GO_TEST.format(mark=""),
        "receipt/receipt.go": 'package receipt\n\nimport (\n\t"fmt"\n\n\t"example.com/till/money"\n)\n\nfunc Line(amount float64) string {\n\treturn fmt.Sprintf("%.2f EUR", money.Rounded(amount))\n}\n',
        "receipt/receipt_test.go": 'package receipt\n\nimport "testing"\n\nfunc TestLine(t *testing.T) {\n\tif got := Line(1.239); got != "1.24 EUR" {\n\t\tt.Errorf("Line = %q", got)\n\t}\n}\n',
    },
    "go test ./...",
    "go test ./money",
    _go("prices"),
    (_go("prices[:min(1, len(prices))]"), _go("prices[:0]")),
    _go("prices {"),
    _go("prices", "return math.Floor(amount)"),
    {"money/money_test.go": 'package money\n\nimport "testing"\n\nfunc TestNothing(t *testing.T) {\n\tif got := Total(nil); got != 0 {\n\t\tt.Errorf("Total = %v, want 0", got)\n\t}\n}\n'},
    {"money/money_test.go": _GO_TEST.format(mark='t.Skip("later")\n\t')},
    lambda _: need("go"),
)  # fmt: skip

# --- Rust -----------------------------------------------------------------------------------------------------

_RUST = "pub fn total(prices: &[f64]) -> f64 {{\n    {total}\n}}\n\npub fn rounded(amount: f64) -> f64 {{\n    {rounded}\n}}\n"
_RUST_TEST = "use till::money::total;\n\n#[test]\n{mark}fn adds_all_prices() {{\n    assert_eq!(total(&[1.0, 2.0, 3.0]), 6.0);\n}}\n\n#[test]\nfn nothing_costs_nothing() {{\n    assert_eq!(total(&[]), 0.0);\n}}\n"


def _rust(total: str, rounded: str = "(amount * 100.0).round() / 100.0") -> dict[str, str | None]:
    return {"src/money.rs": _RUST.format(total=total, rounded=rounded)}


RUST = Till(
    "rust",
    {
        "Cargo.toml": '[package]\nname = "till"\nversion = "0.1.0"\nedition = "2021"\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "till"\nversion = "0.1.0"\n',
        ".gitignore": "/target\n",
        "src/lib.rs": "pub mod money;\npub mod receipt;\n",
        **_rust("prices.iter().skip(1).sum()"),
        "tests/money.rs": _RUST_TEST.format(mark=""),
        "src/receipt.rs": 'use crate::money::rounded;\n\npub fn line(amount: f64) -> String {\n    format!("{:.2} EUR", rounded(amount))\n}\n',
        "tests/receipt.rs": '#[test]\nfn a_line() {\n    assert_eq!(till::receipt::line(1.239), "1.24 EUR");\n}\n',
    },
    "cargo test --offline",
    "cargo test --offline --test money",
    _rust("prices.iter().sum()"),
    (_rust("prices.iter().skip(2).sum()"), _rust("prices.len() as f64")),
    _rust("prices.iter().sum("),
    _rust("prices.iter().sum()", "amount.floor()"),
    {"tests/money.rs": "use till::money::total;\n\n#[test]\nfn nothing_costs_nothing() {\n    assert_eq!(total(&[]), 0.0);\n}\n"},
    {"tests/money.rs": _RUST_TEST.format(mark="#[ignore]\n")},
    lambda _: need("cargo"),
)  # fmt: skip

TILLS = (PYTHON, TYPESCRIPT, GO, RUST)
