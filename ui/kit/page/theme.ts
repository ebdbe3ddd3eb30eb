// Light or dark: as the system says, until somebody chooses.

import { Cell } from "../data/cell";

type Theme = "system" | "light" | "dark";

const KEY = "theme";
const ORDER: readonly Theme[] = ["system", "light", "dark"];

export const theme = new Cell<Theme>("system");

function isTheme(text: string | null): text is Theme {
  return ORDER.includes(text as Theme);
}

function apply(chosen: Theme): void {
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
  theme.set(chosen);
}

/** Restore the last choice, or the colours that the address asks for (`?theme=dark`). */
export function startTheme(): void {
  const asked = new URLSearchParams(location.search).get(KEY);
  const stored = localStorage.getItem(KEY);
  apply(isTheme(asked) ? asked : isTheme(stored) ? stored : "system");
  addEventListener("storage", ({ key, newValue }) => key === KEY && apply(isTheme(newValue) ? newValue : "system"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.tell());
}

/** The next of system, light, dark. */
export function nextTheme(): void {
  const chosen = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system";
  localStorage.setItem(KEY, chosen);
  apply(chosen);
}

/** A colour of the style sheet as it is now, for drawing on a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
