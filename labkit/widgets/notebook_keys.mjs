// Which keys a widget keeps from the notebook around it. Pure.

const MODIFIERS = ["Control", "Meta", "Alt", "Shift"];
const EDITING = "acvxyz"; // copy, paste, undo …: of what has the focus, not of the notebook's cells

/**
 * Whether a key stays in the widget: plain keys do, since the notebook's shortcuts are plain keys ("b" inserts a cell),
 * and so do Ctrl and Meta with a key of editing or with Enter, which would run the cell. Tab and all other shortcuts go
 * on: Ctrl+S saves the notebook.
 */
export function staysHere({ key, ctrlKey = false, metaKey = false, altKey = false }) {
  if (key === "Tab") return false;
  if (MODIFIERS.includes(key)) return true; // alone it is no shortcut, and on its way up it costs a text field its undo
  if (ctrlKey || metaKey || altKey) return key === "Enter" || EDITING.includes(key.toLowerCase());
  return true;
}
