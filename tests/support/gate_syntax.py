"""What tests of action/test_gate_syntax of both tiers share."""

from __future__ import annotations

from pathlib import Path

from loki.action.changes.change import Change
from loki.action.changes.tree import Tree
from loki.action.gates import syntax_check
from loki.action.gates.gate import GateSetting, Subject, Violation


def subject(root: Path, files: dict[str, str | bytes | None], seconds: float = 30.0) -> Subject:
    tree = Tree.scan(root)
    change = Change.write(files).based_on(tree)
    return Subject(
        change, root, tree, GateSetting.model_validate({"timeout": f"{seconds * 1000:g}ms"})
    )


def check(root: Path, files: dict[str, str | bytes | None]) -> list[Violation]:
    return syntax_check.syntax_check(subject(root, files))


RIGHT = {
    "a.js": "#!/usr/bin/env node\nimport a from './a.js' with { type: 'json' };\nexport default class { #x = a?.b ?? 1 }\n",
    "b.js": "if (x) { return }\nwith (a) b;\n",
    "c.js": "export const A = () => <p className='x'>it's</p>;\n",
    "a.jsx": "const A = () => <><B {...p}/></>;\n",
    "a.mjs": "const x = await import('y');\n",
    "a.cjs": "module.exports = require('x');\n",
    "a.ts": "const x = <T,>(y: T) => y satisfies unknown;\nenum A { B }\nabstract class C<T> { declare x: T; constructor(private y = 1) {} }\n",
    "b.ts": "const y = <string>x;\nimport type { A } from './a';\nexport * as ns from './b';\n@dec() class D { accessor z = 1 }\n",
    "a.tsx": "const f = <T,>(p: {x: T}) => <A<T> x={p.x} />;\n",
    "a.d.ts": "declare module 'x' { export = y; }\ndeclare global { var z: number }\n",
    "a.go": "package main\n\nfunc F[T any](x T) (y T, err error) { for range 10 { }; return }\n",
    "a.rs": "#![allow(x)]\npub(crate) async fn f<'a, const N: usize>(x: &'a [u8; N]) -> impl Fn() + '_ { let Some(y) = z else { return }; }\n",
    "a.jsonc": '{"a": [1,], // x\n}',
    ".vscode/settings.json": "// x\n{}",
    "tsconfig.build.json": '{"extends": "./x", /* y */}',
    "a.toml": "a = 1979-05-27\n",
    "a.yaml": "a: &b !x {c: *b}\n",
}  # fmt: skip
