"""What tests of recognition/test_folder of both tiers share."""

from __future__ import annotations

from pathlib import Path

from support.paths import ROOT

NODE = ROOT / "build" / "node" / "node_modules"


# --- real tools ---------------------------------------------------------------------------------------


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def go(root: Path) -> list[str]:
    test = 'package cart\nimport "testing"\nfunc TestA(t *testing.T) { t.Error("no") }\n'
    write(root, {"go.mod": "module example.com/shop\n\ngo 1.18\n", "cart/cart_test.go": test})
    return ["go", "test", "./..."]


def make(root: Path) -> list[str]:
    compiled = "all:\n\tcc -c cart.c\n"
    write(root, {"Makefile": "all:\n\t$(MAKE) -C src\n", "src/Makefile": compiled})
    write(root, {"src/cart.c": "int f(void) { return x; }\n"})
    return ["make"]


def vitest(root: Path) -> list[str]:
    test = 'import {test, expect} from "vitest";\ntest("adds", () => expect(1).toBe(2));\n'
    write(root, {"packages/a/src/a.test.js": test, "packages/a/package.json": '{"type": "module"}'})
    return [str(NODE / ".bin" / "vitest"), "run", "--root", "packages/a"]
