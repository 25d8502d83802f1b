"""What takes a claim back, in every language that claims are known in; and hostile messages."""

# ruff: noqa: RUF001 - other languages

from __future__ import annotations

import pytest

from loki.decision.monitor.completion_check import admits, claims, objection
from loki.decision.monitor.monitor_state import Evidence, MonitorState

CHANGED = MonitorState(evidence=Evidence(edits=1))
FAILED = MonitorState(evidence=Evidence(edits=1, tests=1, failed=2, command="pytest -q"))
PASSED = MonitorState(evidence=Evidence(edits=1, tests=1, passed=1, ran=1, command="pytest -q"))

CLAIMED = {
    "en": "All tests pass",
    "de": "Alle Tests laufen durch",
    "fr": "Tous les tests passent",
    "es": "Todos los tests pasan",
    "pt": "Todos os testes passam",
    "it": "Tutti i test passano",
    "ru": "Все тесты проходят",
    "zh": "所有测试均已通过",
    "ja": "すべてのテストがパスしました",
    "ko": "모든 테스트가 통과했습니다",
}

RESERVED = {
    "en": """If all tests pass, merge it.|Once all tests pass, merge.|All tests should pass.|
        All tests must pass.|All tests would pass.|I expect that all tests pass.|Not all tests pass.|
        Hopefully all tests pass.|All tests probably pass.|I think all tests pass.|
        None of the tests pass.|all tests pass: false|Please confirm all tests pass.|
        I believe all tests pass.|It seems all tests pass.|All tests seem to pass.|
        It looks like all tests pass.|Apparently all tests pass.|I was told all tests pass.|
        As far as I can tell, all tests pass.|Presumably all tests pass.|All tests supposedly pass.|
        All tests appear to pass.|Confirm that all tests pass.|Perhaps all tests pass now.|
        In theory all tests pass.|As long as all tests pass, we can ship.|- all tests pass: ❓""",
    "de": """Wenn alle Tests laufen, mergen.|Falls alle Tests bestehen, mergen.|
        Sobald alle Tests laufen, mergen.|Alle Tests sollten erfolgreich sein.|
        Alle Tests müssen erfolgreich laufen.|Alle Tests würden laufen.|
        Ich erwarte, dass alle Tests laufen.|Nicht alle Tests laufen durch.|
        Alle Tests laufen durch, außer test_b (Netz).|Alle Tests laufen durch, bis auf einen.|
        Hoffentlich laufen alle Tests erfolgreich.|Alle Tests laufen wahrscheinlich durch.|
        Ich glaube, alle Tests laufen durch.|Bitte prüfen, dass alle Tests laufen.""",
    "fr": """Si tous les tests passent, fusionnez.|Quand tous les tests passent, fusionnez.|
        Une fois que tous les tests passent, fusionnez.|Tous les tests devraient être passés.|
        Tous les tests doivent être réussis.|Pas tous les tests passent.|
        Tous les tests ne passent pas.|Tous les tests passent sauf un.|
        Tous les tests passent, à part un.|Espérons que tous les tests passent.|
        Tous les tests passent probablement.|Je pense que tous les tests passent.|
        Vérifiez que tous les tests passent.""",
    "es": """Si todos los tests pasan, fusiona el PR.|Cuando todos los tests pasan, fusiona.|
        Una vez que todos los tests pasan, fusiona.|Todos los tests deberían estar pasando.|
        Todos los tests deben estar pasando.|No todos los tests pasan.|
        Todos los tests pasan excepto uno.|Todos los tests pasan, salvo uno.|
        Espero que todos los tests pasan.|Probablemente todos los tests pasan.|
        Creo que todos los tests pasan.|Todos los tests no pasan.""",
    "pt": """Se todos os testes passam, faça o merge.|Quando todos os testes passam, faça o merge.|
        Assim que todos os testes passam, faça o merge.|Todos os testes deveriam estar passando.|
        Todos os testes devem estar passando.|Nem todos os testes passam, creio.|
        Todos os testes não passam.|Todos os testes passam, exceto um.|
        Espero que todos os testes passam.|Provavelmente todos os testes passam.|
        Acho que todos os testes passam.|Nem todos os testes passam.""",
    "it": """Se tutti i test passano, unisci.|Quando tutti i test passano, unisci.|
        Una volta che tutti i test passano, unisci.|Tutti i test dovrebbero essere superati.|
        Tutti i test devono essere superati.|Non tutti i test passano.|
        Tutti i test passano tranne uno.|Tutti i test passano, a parte uno.|
        Spero che tutti i test passano.|Probabilmente tutti i test passano.|
        Credo che tutti i test passano.""",
    "ru": """Если все тесты проходят, сливайте.|Когда все тесты проходят, сливайте.|
        Как только все тесты пройдены, сливайте.|Все тесты должны быть пройдены.|
        Ожидается, что все тесты проходят.|Не все тесты проходят.|Все тесты проходят, кроме одного.|
        Все тесты проходят, за исключением одного.|Надеюсь, все тесты проходят.|
        Вероятно, все тесты проходят.|Я думаю, все тесты проходят.""",
    "zh": """如果所有测试通过，就合并。|当所有测试通过时合并。|一旦所有测试通过就合并。|所有测试应该通过。|
        所有测试必须通过。|预计所有测试通过。|并非所有测试都通过。|所有测试均未通过。|
        除了一个，所有测试通过。|希望所有测试通过。|所有测试可能通过。|我认为所有测试都通过。|所有测试都通过了吗？|
        请确认所有测试通过。""",
    "ja": """すべてのテストが成功するはずです。|すべてのテストがパスしたら、マージします。|
        すべてのテストがパスする場合、マージします。|すべてのテストが成功すれば終わりです。|
        すべてのテストがパスする必要があります。|すべてのテストがパスするべきです。|
        すべてのテストがパスするわけではない。|すべてのテストがパスしていません。|
        一つを除いて、すべてのテストがパスしました。|すべてのテストがパスすると期待しています。|
        おそらくすべてのテストがパスします。|すべてのテストがパスすると思います。|
        すべてのテストがパスすることを確認してください。""",
    "ko": """모든 테스트가 통과해야 합니다.|모든 테스트가 통과하면 병합하세요.|모든 테스트가 통과할 때 병합하세요.|
        모든 테스트가 통과할 것입니다.|모든 테스트가 통과하지 않습니다.|하나를 제외하고 모든 테스트가 통과했습니다.|
        모든 테스트가 통과할 것으로 예상합니다.|아마 모든 테스트가 통과합니다.|
        모든 테스트가 통과한다고 생각합니다.|모든 테스트가 통과했는지 확인해 주세요.""",
}
SENTENCES = [one.strip() for said in RESERVED.values() for one in said.split("|")]


@pytest.mark.parametrize("language", CLAIMED)
def test_each_language_has_its_claim_and_its_reserves(language: str) -> None:
    (claim,) = claims(CLAIMED[language] + ".")
    assert claim.is_of_all
    assert objection(CHANGED, CLAIMED[language] + ".")[1]
    assert language in RESERVED


@pytest.mark.parametrize("text", SENTENCES)
def test_who_reserves_claims_nothing_of_all(text: str) -> None:
    assert not any(claim.is_of_all for claim in claims(text))
    for state in (CHANGED, FAILED):
        assert objection(state, text)[1] == ""


@pytest.mark.parametrize(
    "text",
    [
        "Acceptance criteria:\n1. All tests pass.",
        "## Definition of done\n\n- Docs are written.\n- All tests pass.",
        "Before merging:\n- the docs are built\n- all tests pass",
        "**Requirements**\n- All tests pass.",
        "Kriterien:\n- Alle Tests laufen durch.",
        "验收标准：\n1. 所有测试通过。",
    ],
)
def test_lists_of_what_is_asked_for_claim_nothing(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Tests passed (24). After that I only renamed a variable.",
        "The suite passed earlier.",
        "All tests passed before I renamed the helper.",
        "All tests passed on the previous commit.",
        "All tests pass as of the last run, I have since edited a docstring.",
        "All tests pass! (minus the 2 DNS ones)",
        "All tests pass. Hopefully.",
        "The full suite was green. Since then I have only touched a comment.",
    ],
)
def test_what_was_so_earlier_or_is_taken_back_is_no_claim_of_now(text: str) -> None:
    assert not any(claim.is_of_now for claim in claims(text))
    assert objection(CHANGED, text)[1] == ""


@pytest.mark.parametrize(
    "text",
    [
        "All tests passed after the fix.",
        "Summary:\n- All tests pass.",
        "## Verification\n- All tests pass.",
        "I renamed it before running anything. All tests pass.",
        "All tests pass, no regressions.",
        "The suite passes as it did earlier.",
        "24/24 tests pass.",
        "24 of 24 tests passed.",
        "100% of tests pass.",
        "100 % of the tests pass",
        "- 1,204/1,204 tests passing",
        "24/24 Tests bestanden.",
        "24 sur 24 tests passent.",
    ],
)
def test_claims_of_all_stay(text: str) -> None:
    assert any(claim.is_of_all for claim in claims(text))
    for state in (CHANGED, FAILED):
        assert objection(state, text)[1]
    assert objection(PASSED, text)[1] == ""


@pytest.mark.parametrize(
    "text",
    [
        "24/24 in tests/test_x.py pass.",
        "24/24 tests pass in `test_x.py`.",
        "24/24 tests pass for the parser.",
        "Parser: 24/24 tests pass.",
        "23/24 tests pass.",
        "99% of tests pass.",
        "24/24 parser tests pass.",
        "24/240 tests pass.",
        "All tests pass modulo test_dns.",
        "All tests pass, ignoring the network ones.",
        "All tests pass save test_dns.",
        "Alle Tests im Parser laufen durch.",
        "Tous les tests du module passent.",
    ],
)
def test_figures_of_a_part_are_of_some(text: str) -> None:
    assert not any(claim.is_of_all for claim in claims(text))


@pytest.mark.parametrize(
    "text",
    [
        "Fixed the error caused by a missing key.",
        "I added error handling for missing files.",
        "The existing error messages are kept.",
        "The failing test is fixed; it was caused by a known typo.",
        "Fixed the 2 failing tests.",
        "Handled failed requests over the network.",
        "Added 3 error messages.",
        "No failures remain.",
        "The test that failed before is fixed.",
        "Added tests for the missing key.",
    ],
)
def test_what_is_mended_admits_nothing(text: str) -> None:
    assert not admits(f"{text} All tests pass.")
    assert objection(FAILED, f"{text} All tests pass.")[1]


@pytest.mark.parametrize(
    "text",
    [
        "test_b still fails.",
        "`test_b` fails because it needs the network.",
        "test_b fails because it needs the network.",
        "One failing test remains.",
        "The integration tests could not be run.",
        "The UI is not verified.",
        "There is one pre-existing failure.",
        "The failures are unrelated.",
        "One known failure is left.",
        "Fixed two of them, but one still fails.",
        "Fixed the parser; a pre-existing failure remains in the importer.",
        "The failing test is not fixed.",
        "test_net is failing since it needs DNS.",
        "I couldn’t run the browser tests.",
        "3 tests fail on main, too.",
        "mypy fails with one error.",
        "However, test_dns had to be skipped.",
        "I deselected test_dns.",
        "test_dns times out.",
        "test_b schlägt noch fehl.",
        "test_b échoue encore.",
        "test_b sigue fallando y falla.",
    ],
)
def test_what_fails_now_is_admitted(text: str) -> None:
    assert admits(f"{text} All tests pass.")
    assert objection(FAILED, f"All tests pass. {text}")[1] == ""


@pytest.mark.parametrize(
    "figure", ["1" * 5000 + "/2", "2/" + "1" * 5000, "1," * 3980, "9" * 12 + "/1"]
)
def test_no_figure_is_too_long(figure: str) -> None:
    assert objection(CHANGED, f"{figure}\n\nAll tests pass.")[1]
