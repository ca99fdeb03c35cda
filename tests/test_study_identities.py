"""An id is a name and no proof: what strangers get who use the id of another person."""

import pytest
from click.testing import CliRunner
from studykit import Web, count, knock

from nearer.cli import main
from nearer.study.actions import set_state


@pytest.fixture
def web(tmp_path):
    made = Web(tmp_path / "s.db", questions=12)
    yield made
    made.close()


def test_an_id_too_long_is_refused_in_words(web):
    assert "must have at most 200 characters" in knock(web, "", PROLIFIC_PID="x" * 201).text


def test_a_taken_id_opens_nothing(web):
    victim = knock(web, "the victim's browser", PROLIFIC_PID="abc").json()["token"]
    headers = {"authorization": f"Bearer {victim}"}
    web.client.post("/api/ready", headers=headers)
    web.answer(headers)
    for browser in ("", "another browser"):
        stranger = knock(web, browser, PROLIFIC_PID="abc")
        assert stranger.status_code == 409
        assert set(stranger.json()) == {"detail"}
    assert (count(web), count(web, "people")) == (1, 1)
    again = knock(web, "the victim's browser", PROLIFIC_PID="abc").json()
    assert again["answered"] == 1, "the same browser goes on, also when its token was lost"


def test_a_browser_used_before_does_not_speak_for_another_id(web):
    """In a lab the next person sits at the same computer."""
    first = knock(web, "lab 7", SONA="", survey_code="1").json()["token"]
    second = knock(web, "lab 7", survey_code="2").json()["token"]
    assert first != second
    assert knock(web, "lab 7", survey_code="1").json()["token"] == first


@pytest.mark.parametrize("state", ["paused", "running"])
def test_ids_cannot_be_tried_out_on_a_study_that_is_closed(web, state):
    knock(web, "b", survey_code="1000")
    if state == "paused":
        web.study.store.write(lambda ledger: set_state(ledger, "paused"))
        replies = {knock(web, survey_code=code).text for code in ("1000", "1001")}
        assert len(replies) == 1
    else:
        assert "token" not in knock(web, survey_code="1000").json()


def test_a_personal_link_goes_on_elsewhere_if_the_researcher_chose_so(tmp_path):
    web = Web(tmp_path / "s.db", returning="link")
    joined = knock(web, "b", PROLIFIC_PID="abc").json()
    assert knock(web, PROLIFIC_PID="abc").status_code == 409
    link = joined["resume"].removeprefix("?resume=")
    assert knock(web, resume=link).json()["token"] == joined["token"]
    assert knock(web, resume=joined["token"]).status_code == 403, "a token is no link"
    assert knock(web, resume=link[:-2] + "xx").status_code == 403
    web.close()


def test_a_researcher_can_give_a_person_a_link(web):
    joined = knock(web, "b", PROLIFIC_PID="abc").json()
    link = CliRunner().invoke(main, ["study", "link", str(web.path), "abc"]).output.strip()
    assert knock(web, resume=link.partition("?resume=")[2]).json()["token"] == joined["token"]


def test_joining_has_a_limit(tmp_path):
    web = Web(tmp_path / "s.db", joins_per_minute=1)
    replies = [knock(web).status_code for _ in range(310)]
    assert replies[:300] == [200] * 300
    assert set(replies[302:]) == {429}
    web.close()
