"""One widget on an empty page, with a model that is only there: what its JavaScript does, without JupyterLab."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page

#: ``reached``: keys that the page around the widget gets, where JupyterLab listens for its shortcuts; ``saved``: what
#: was sent to Python.
_RENDER = """async ([esm, css, state]) => {
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  const { default: widget } = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  const listeners = [];
  window.reached = [];
  window.saved = [];
  document.addEventListener("keydown", (event) => window.reached.push(event.key));
  window.model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    on: (name, call) => listeners.push([name, call]),
    off: () => {},
    save_changes: () => window.saved.push(structuredClone(state)),
  };
  window.fromPython = (changed) => {
    Object.assign(state, changed);
    for (const [name, call] of listeners) if (name.replace("change:", "") in changed) call();
  };
  const el = document.createElement("div");
  document.body.append(el);
  await widget.render({ model: window.model, el });
}"""


def show_widget(page: Page, widget: Any) -> None:
    """Render a widget's JavaScript with the traits that it has now."""
    state = {name: getattr(widget, name) for name in widget.keys if not name.startswith("_")}
    state = json.loads(
        json.dumps({k: v for k, v in state.items() if isinstance(v, (str, int, dict, list, type(None)))})
    )
    page.set_content("<!doctype html><title>a widget</title>")
    page.evaluate(_RENDER, [widget._esm, getattr(widget, "_css", ""), state])


def from_python(page: Page, widget: Any, *names: str) -> None:
    """Tell the page the traits of this name as they are now."""
    page.evaluate("changed => window.fromPython(changed)", {name: getattr(widget, name) for name in names})


def reached(page: Page) -> list[str]:
    """Keys that the page around the widget has got."""
    found: list[str] = page.evaluate("() => window.reached")
    return found
