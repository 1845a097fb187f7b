"""The editor on a page of its own: no server, no kernel, but a stand-in for the widget's model, which a test sets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from labkit.experiments.lineup import Lineup
from labkit.widgets.edge_editor import EdgeEditor, rules_of

#: As of ipywidgets: a message sets all its values before anybody hears of one of them, in the order of the message.
_PAGE = """
([esm, css, state]) => {
  document.body.innerHTML = `<style>${css}</style><div id="here" style="width: 900px"></div>
    <div style="height: 2000px"></div>`;
  const calls = {};
  window.sent = [];
  window.model = {
    get: (name) => state[name],
    on: (name, call) => (calls[name] ??= []).push(call),
    off: (name, call) => { calls[name] = calls[name].filter((other) => other !== call); },
    set(values, value) {
      const given = typeof values === "string" ? { [values]: value } : values;
      const changed = Object.keys(given).filter((name) => JSON.stringify(state[name]) !== JSON.stringify(given[name])
        || given[name] instanceof DataView);
      Object.assign(state, given);
      for (const name of changed) for (const call of calls[`change:${name}`] ?? []) call();
      if (changed.length) for (const call of calls.change ?? []) call();
    },
    save_changes: () => window.sent.push({ edges: state.edges, max_length: state.max_length, seq: state.seq }),
  };
  window.doubles = (values) => new DataView(Float64Array.from(values).buffer);
  for (const name of ["lengths", "counts"]) state[name] = window.doubles(state[name]);
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  return import(url).then(({ default: widget }) => {
    window.dispose = widget.render({ model: window.model, el: document.getElementById("here") });
  });
}
"""


class LoneEditor:
    """One editor, of lengths 1 .. 100, each once, without an optimum; settings in ``state`` win."""

    def __init__(self, page: Page, **state: Any) -> None:
        self.page = page
        self.root: Locator = page.locator(".labkit-editor")
        known = {
            "lengths": np.arange(1, 101).tolist(),
            "counts": [1] * 100,
            "edges": [10, 40, 100],
            "max_length": None,
            "seq": 0,
            "answered": 0,
            "rules": rules_of(Lineup()),
            "optimum": {},
            "snap": 1,
            "log_axis": False,
            "most": 16,
        }
        page.goto("about:blank")
        page.evaluate(_PAGE, [EdgeEditor._esm, EdgeEditor._css, known | state])
        expect(self.root.locator(".bar").first).to_be_visible()

    @property
    def edges(self) -> list[int]:
        return [int(edge) for edge in (self.root.get_attribute("data-edges") or "").split(",")]

    def says(self, *edges: int) -> None:
        """Wait until these edges are shown."""
        expect(self.root).to_have_attribute("data-edges", ",".join(map(str, edges)))

    def receive(self, **values: Any) -> None:
        """A message of Python, its values in this order."""
        self.page.evaluate(
            "values => { for (const name of ['lengths', 'counts']) if (name in values)"
            " values[name] = doubles(values[name]); model.set(values); }",
            values,
        )

    def answer(self) -> None:
        """Python answers all changes, one after another."""
        self.page.evaluate(
            "() => { while (model.get('answered') < model.get('seq')) model.set({answered: model.get('seq')}); }"
        )

    def handle(self, number: int) -> Locator:
        return self.root.locator(".handle.edge").nth(number - 1)

    @property
    def cap(self) -> Locator:
        return self.root.locator(".handle.cap")

    def grip(self, handle: Locator) -> tuple[float, float]:
        """Its middle, in pixels of the page."""
        box = handle.locator(".grip").bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def take(self, handle: Locator) -> tuple[float, float]:
        """Press the mouse on it."""
        x, y = self.grip(handle)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        return x, y

    def focused(self) -> str | None:
        """What has the focus: its name for a screen reader, or its text."""
        return self.page.evaluate(
            "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
        )


Opened = Callable[..., LoneEditor]


@contextlib.contextmanager
def lone_page(browser: Browser) -> Iterator[Page]:
    """An empty page whose errors fail the test."""
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{error.message}\n{error.stack}"))
    yield page
    page.close()
    assert errors == [], "the page raised errors"


def box_of(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None
    return box
