"""A headline acts on what a strand says in fields, never on the words that people read."""

from __future__ import annotations

from eval_core.comparing import headline
from eval_core.strands.findings import Finding, Kind, StrandState


def strands(**form: object) -> dict[str, Finding]:
    told = Finding(name="form", state=StrandState.WORSE, says="reworded: each one is a stub", loss=1.0)
    facts = Finding(name="facts", state=StrandState.WORSE, says="40 facts lost", loss=0.5)
    return {"form": told.model_copy(update=form), "facts": facts}


def test_stubs_alone_make_the_headline_however_they_are_worded() -> None:
    said = headline.changed(Kind.REGRESSED, strands(code="all_stubs"), None)
    assert said == f"{Kind.REGRESSED.words}: reworded: each one is a stub."
    assert "40 facts lost" in headline.changed(Kind.REGRESSED, strands(), None)


def test_a_possible_refusal_is_read_first_however_it_is_worded() -> None:
    step = headline.next_step(Kind.REGRESSED, fixtures=["a"], strands=strands(may_be_refusal=True))
    assert "refused" in step
    assert "refused" not in headline.next_step(Kind.REGRESSED, fixtures=["a"], strands=strands())
