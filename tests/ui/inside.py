"""What a page and its kernel hold inside: widgets on both sides, memory, the kernel's own words."""

from __future__ import annotations

import ast
from typing import Any

import psutil
from playwright.sync_api import Page

from tests.ui.jupyter import JupyterLab

_ASK = """async ({before, expression}) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const asked = {code: before, silent: true, store_history: false, user_expressions: {it: expression}};
  const answer = (await kernel.requestExecute(asked).done).content;
  if (answer.status !== "ok") throw new Error(`${answer.ename}: ${answer.evalue}`);
  const {it} = answer.user_expressions;
  if (it.status !== "ok") throw new Error(`${it.ename}: ${it.evalue}`);
  return it.data["text/plain"];
}"""
# the manager of a notebook's widgets, as its renderers get it
_MODELS = """async () => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const renderer = notebook.rendermime.createRenderer("application/vnd.jupyter.widget-view+json");
  const manager = await renderer._manager.promise;
  renderer.dispose();
  return Object.keys(manager._models).length;
}"""


def ask_kernel(page: Page, expression: str, before: str = "") -> Any:
    """A literal from the kernel of the open notebook: statements are run, then the expression; no cell is touched."""
    return ast.literal_eval(page.evaluate(_ASK, {"before": before, "expression": expression}))


def widgets_of_kernel(page: Page) -> int:
    """Widgets that are alive in the kernel."""
    return int(ask_kernel(page, "len(__import__('ipywidgets').widgets.widget._instances)"))


def widgets_of_page(page: Page) -> int:
    """Models that the page's widget manager holds."""
    return int(page.evaluate(_MODELS))


def nodes_of_widgets(page: Page) -> int:
    """Elements of widgets in the document."""
    return int(page.evaluate("() => document.querySelectorAll('.jupyter-widgets').length"))


def heap_mb(page: Page) -> float:
    """JavaScript heap after collecting garbage, in MB of 10^6 bytes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return float(metrics["JSHeapUsedSize"]) / 1e6


def kernel_mb(lab: JupyterLab) -> float:
    """Resident memory of the server's kernels, in MB of 10^6 bytes."""
    children = psutil.Process(lab.pid).children(recursive=True)
    kernels = [child for child in children if "ipykernel_launcher" in " ".join(child.cmdline())]
    return sum(kernel.memory_info().rss for kernel in kernels) / 1e6
