"""Lesson 12: the true delay of a message counts, and half of it, which `latency` says, does not."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.lessons.grade import LessonMark
from mrc_testbed.testbed.lessons.shelf import LESSONS
from tests.lessons.stage import STUDENTS, Class

PACKET_BITS, PORT_BPS, SWITCHES_MORE = 4238 * 8, 6.25e6, 4
TRUE_MS = SWITCHES_MORE * PACKET_BITS / PORT_BPS * 1000
"""Each further switch receives the packet whole before it sends it on."""


@pytest.mark.parametrize(("share", "right"), [(1.0, True), (0.5, False), (0.9, False), (1.25, False), (2.0, False)])
@pytest.mark.nightly
def test_the_delay_of_a_message_is_not_halved(share: float, right: bool, pupils: Class) -> None:
    student = pupils.student(LESSONS / "12-three-wirings", STUDENTS[0])
    grade = student.grade(far_ms=f"{share * TRUE_MS:.4g}")
    failed = [part.name for part in grade.parts if part.mark is not LessonMark.PASS]
    assert failed == ([] if right else ["far_ms"])
