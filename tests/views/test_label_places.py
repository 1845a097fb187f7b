from __future__ import annotations

import itertools
import random

import numpy as np

from labkit.views.label_places import Mark, Place, place_labels

WIDTH, HEIGHT = 240.0, 180.0


def mark(x: float, y: float, radius: float = 6.0, width: float = 50.0, text: str = "a") -> Mark:
    return Mark(x, y, radius, ((text, width, 15.0),))


def test_a_mark_alone_has_its_label_right_above_it() -> None:
    (place,) = place_labels([mark(100, 90)], WIDTH, HEIGHT)
    assert place is not None
    assert (place.x, place.y) == (100, 90 - 6 - 2 - 7.5)


def test_at_the_border_the_label_goes_inside() -> None:
    (place,) = place_labels([mark(WIDTH, 0)], WIDTH, HEIGHT)
    assert place is not None
    assert place.x <= WIDTH - 25
    assert place.y >= 7.5


def test_a_long_label_is_set_on_two_lines_where_one_is_too_wide() -> None:
    both = Mark(100, 90, 6, (("long, label", 300.0, 15.0), ("long,<br>label", 40.0, 28.0)))
    (place,) = place_labels([both], WIDTH, HEIGHT)
    assert place is not None
    assert place.text == "long,<br>label"


def test_none_lies_on_another_or_on_a_mark_or_outside_at_any_larger_width() -> None:
    chance = random.Random(1)
    for _ in range(30):
        marks = [
            mark(chance.uniform(0, WIDTH), chance.uniform(0, HEIGHT), chance.uniform(4, 17), chance.uniform(30, 90))
            for _ in range(9)
        ]
        found = [(m, p) for m, p in zip(marks, place_labels(marks, WIDTH, HEIGHT), strict=True) if p is not None]
        assert len(found) >= 8
        for wider in (1.0, 1.5, 4.0):
            places = [type(p)(p.text, p.x * wider, p.y, p.width, p.height) for _, p in found]
            assert not any(a.overlaps(b) for a, b in itertools.combinations(places, 2))
            for p in places:
                assert p.width / 2 <= p.x <= WIDTH * wider - p.width / 2 + 1e-9
                assert p.height / 2 <= p.y <= HEIGHT - p.height / 2 + 1e-9
                for m in marks:
                    dx = max(0.0, abs(p.x - m.x * wider) - p.width / 2)
                    dy = max(0.0, abs(p.y - m.y) - p.height / 2)
                    assert dx**2 + dy**2 >= m.radius**2


def test_no_marks_and_no_room() -> None:
    assert place_labels([], WIDTH, HEIGHT) == []
    assert place_labels([mark(10, 10)], 20.0, 20.0) == [None]


def test_a_label_stands_nearer_to_its_own_mark_than_to_another() -> None:
    marks = [mark(100, 60), mark(100, 100, width=60.0, text="b"), mark(104, 64, text="c")]
    for one, place in zip(marks, place_labels(marks, WIDTH, HEIGHT), strict=True):
        assert place is not None

        def away(from_: Mark, place: Place = place) -> float:
            dx = max(0.0, abs(from_.x - place.x) - place.width / 2)
            dy = max(0.0, abs(from_.y - place.y) - place.height / 2)
            return float(np.hypot(dx, dy)) - from_.radius

        apart = [m for m in marks if np.hypot(m.x - one.x, m.y - one.y) > m.radius]
        assert all(away(one) <= away(other) for other in apart)
