"""EdgeEditor without a browser: what it sends, what it takes; and its modules in node."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from labkit.batching.edges import optimal_edges
from labkit.experiments.lineup import Lineup
from labkit.lengths.histogram import LengthHistogram
from labkit.widgets.edge_editor import EdgeEditor, Setting
from labkit.widgets.modules import joined_modules
from tests.widgets import padding_cases

HERE = Path(__file__).parent
LENGTHS = LengthHistogram(np.array([0, 1, 2, 8]), np.array([4, 10, 1, 1]))


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = shutil.which("node")
    assert path, "node is missing: run `make setup-tests` (on Debian/Ubuntu: sudo apt-get install nodejs)"
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["padding.test.mjs", "edge_moves.test.mjs"])
def test_the_pure_modules_pass_their_own_tests(name: str) -> None:
    done = node("--test", str(HERE / name))
    assert done.returncode == 0, done.stdout
    assert "\n# fail 0" in done.stdout
    assert "\n# pass 0" not in done.stdout


def test_the_committed_cases_are_what_python_says_today() -> None:
    assert json.loads(padding_cases.FILE.read_text()) == json.loads(json.dumps(padding_cases.cases()))


def test_the_joined_module_is_one_that_a_browser_can_load(tmp_path: Path) -> None:
    (tmp_path / "editor.mjs").write_text(EdgeEditor._esm)
    (tmp_path / "load.mjs").write_text(
        'import widget from "./editor.mjs"; console.log(Object.keys(widget), typeof widget.render);'
    )
    done = node(str(tmp_path / "load.mjs"))
    assert done.stdout == "[ 'render' ] function\n", done.stderr


def test_modules_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text("export const one = 1;\n")
    (tmp_path / "b.mjs").write_text('import { one } from "./a.mjs";\nexport default { one };\n')
    assert joined_modules("a.mjs", "b.mjs", folder=tmp_path) == "const one = 1;\n\nexport default { one };\n"
    with pytest.raises(ImportError, match=r"b\.mjs imports a\.mjs, which is not joined before it"):
        joined_modules("b.mjs", folder=tmp_path)
    (tmp_path / "c.mjs").write_text('import * as all from "./a.mjs";\n')
    with pytest.raises(ImportError, match=r"c\.mjs has a line that cannot be joined: 'import \* as all"):
        joined_modules("a.mjs", "c.mjs", folder=tmp_path)


def test_the_histogram_is_sent_as_doubles() -> None:
    editor = EdgeEditor(LENGTHS, (2, 8))
    assert np.frombuffer(editor.lengths).tolist() == [0, 1, 2, 8]
    assert np.frombuffer(editor.counts).tolist() == [4, 10, 1, 1]


def test_other_data_comes_in_one_message_with_its_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    editor = EdgeEditor(LENGTHS, (2, 8))
    sent: list[set[str]] = []
    monkeypatch.setattr(editor, "send_state", lambda key=None: sent.append(set(key)))
    editor.answer(0, Lineup(), histogram=LengthHistogram.from_lengths([3, 3]), edges=(3,))
    assert np.frombuffer(editor.counts).tolist() == [2]
    assert {"lengths", "counts", "edges"} <= sent[0]
    assert len(sent) == 1
    editor.answer(0, Lineup(token_budget=7), histogram=editor._shown, edges=(3,))
    assert sent[1:] == [{"rules"}]  # the lengths are not sent again


def test_a_late_answer_leaves_the_edges_that_the_page_sent_since() -> None:
    editor = EdgeEditor(LENGTHS, (2, 8))
    editor.set_state({"edges": [3, 8], "max_length": None, "seq": 1})
    old = editor.setting
    editor.set_state({"edges": [4, 8], "max_length": 6, "seq": 2})
    editor.answer(old.seq, Lineup(), edges=old.edges)
    assert editor.setting == Setting(2, (4, 8), 6, edges_moved=True, cap_moved=True)
    assert editor.answered == 1


def test_an_answer_waits_for_a_message_that_is_being_taken_in() -> None:
    editor = EdgeEditor(LENGTHS, (2, 8))
    done = threading.Event()

    def answer() -> None:
        editor.answer(0, Lineup(), edges=(3, 8))
        done.set()

    with editor._taking:
        threading.Thread(target=answer).start()
        assert not done.wait(0.2)
        editor.set_state({"seq": 1, "edges": [4, 8]})
    assert done.wait(10)
    assert editor.edges == [4, 8]


def test_listeners_hear_of_a_message_when_all_of_it_is_there_and_nothing_is_held() -> None:
    heard = []

    def listen() -> None:
        other = threading.Thread(target=lambda: heard.append(editor.setting))  # it would wait for ever
        other.start()
        other.join(5)

    editor = EdgeEditor(LENGTHS, (2, 8), listen)
    editor.set_state({"seq": 1, "edges": [3, 8], "max_length": 5})
    assert heard == [Setting(1, (3, 8), 5, edges_moved=True, cap_moved=True)]


def test_a_change_by_the_user_calls_back_and_an_answer_does_not() -> None:
    calls: list[int] = []
    editor = EdgeEditor(LENGTHS, (2, 8), lambda: calls.append(1))
    editor.set_state({"edges": [1, 8], "max_length": None, "seq": 1})
    assert (editor.edges, calls) == ([1, 8], [1])
    lineup = Lineup(token_budget=99, row_multiple=4)
    editor.answer(1, lineup, edges=(2, 8), optimum=optimal_edges(LENGTHS, 2))
    assert (editor.edges, editor.answered, calls) == ([2, 8], 1, [1])
    assert editor.rules["budget"] == 99
    assert editor.optimum == {"edges": [1, 8], "curve": [128, 30], "asked": 2, "cap": None}


def test_an_older_answer_does_not_take_a_newer_one_back() -> None:
    editor = EdgeEditor(LENGTHS, (2, 8))
    editor.answer(7, Lineup())
    editor.answer(5, Lineup())
    assert editor.answered == 7
