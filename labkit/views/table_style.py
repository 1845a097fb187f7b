"""Style of every table of the lab, light and dark; it travels with the table, so that HTML without a kernel has it."""

from __future__ import annotations

from labkit.views.palette import CSS

STYLE = (
    f"\n<style>\n{CSS}"
    """/* JupyterLab lays tables of outputs out with fixed columns: names and bars would overlap */
.labkit-table { border-collapse: collapse; table-layout: auto !important; width: 100%;
  font-size: 12.5px; line-height: 1.25; font-variant-numeric: tabular-nums; color: var(--jp-ui-font-color1, inherit); }
.labkit-table-box { overflow-x: auto; container-type: inline-size; }
@container (max-width: 720px) {
  .labkit-table { font-size: 11.5px; }
  .labkit-table th, .labkit-table td { padding: 4px 3px; }
  .labkit-table tbody th small { display: none !important; }
}
.labkit-table th, .labkit-table td { padding: 4px 6px; text-align: right; white-space: nowrap; background: none; }
.labkit-table thead th { white-space: normal; vertical-align: bottom; font-weight: 600;
  color: var(--jp-ui-font-color2, #666);  border-bottom: 1px solid var(--jp-border-color1, #bbb); cursor: help; }
.labkit-table tbody tr { background: none !important;
  border-bottom: 1px solid var(--jp-border-color3, rgba(127,127,127,.2)); }
.labkit-table th:first-child { text-align: left; font-weight: 600; }
.labkit-table tbody th small { display: block; font-weight: 400; white-space: normal; min-width: 132px;
  color: var(--jp-ui-font-color2, #666); }
.labkit-table td.error { text-align: left; white-space: normal; color: var(--jp-error-color1, #b32d00); }
.labkit-table td.best { font-weight: 700; }
.labkit-table td.loss { color: var(--jp-error-color1, #b32d00); font-weight: 700; }
.labkit-table td.best::before { content: "▸ "; color: var(--labkit-good); }
.labkit-table .bar {
  background: linear-gradient(to right, rgba(230,159,0,.38) var(--share), transparent var(--share)); }
.labkit-table sup { font-size: 9px; margin-left: 3px; padding: 0 3px; border-radius: 3px; cursor: help; line-height: 1;
  color: var(--jp-ui-font-color2, #666); border: 1px solid var(--jp-border-color2, rgba(127,127,127,.45)); }
.labkit-table sup.modelled { color: var(--labkit-modelled); border: 1px dashed; }
.labkit-table sup.measured, .labkit-table sup.recorded { color: var(--labkit-good); border-color: currentColor; }
/* on a bar of padding grey would be too pale */
.labkit-table .bar sup { color: var(--jp-ui-font-color1, #222); }
.labkit-table thead th:focus-visible { outline: 2px solid var(--labkit-ring); outline-offset: -2px; }
.labkit-table thead .groups th { border-bottom: 0; padding: 2px 6px 0; font-size: 11px; font-weight: 400;
  cursor: default; }
.labkit-table thead .groups th:first-child + th[colspan],
.labkit-table thead .groups th[colspan] + th.minor { border-left: 0; }
.labkit-table thead .groups th + th[colspan] { border-left: 1px solid var(--jp-border-color2, rgba(127,127,127,.45)); }
.labkit-table .first { border-left: 1px solid var(--jp-border-color2, rgba(127,127,127,.45)); }
.labkit-table td.stale, .labkit-table td.stale sup { color: var(--labkit-quiet); font-style: italic; }
.labkit-table.wide { font-size: 11px; }
.labkit-table.wide th, .labkit-table.wide td { padding: 3px 2px; }
.labkit-table.wide th:first-child { position: sticky; left: 0; background: var(--jp-layout-color0, #fff); z-index: 1; }
.labkit-table.wide tbody th small { display: none; }
.labkit-table.wide sup { font-size: 8px; margin-left: 1px; padding: 0 1px; border-color: transparent; }
.labkit-table.wide td.best::before { content: "▸"; }
.labkit-table .left-out { display: none; }
@container (max-width: 1100px) {
  .labkit-table.widest .minor { display: none; }
  .labkit-table.widest ~ .labkit-legend .left-out { display: inline; }
}
.labkit-legend { line-height: 1.35; font-size: 11px; color: var(--jp-ui-font-color2, #666); margin: 4px 0 0; }
</style>
"""
)
