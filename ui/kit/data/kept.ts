// Values that this browser keeps for later pages. If it stores nothing (a private window, a full disk), they end with the page.

type Store = "localStorage" | "sessionStorage";

/** The value of a key, or `otherwise` if there is none that can be read. */
export function kept<T>(key: string, otherwise: T, store: Store = "localStorage"): T {
  try {
    const text = globalThis[store].getItem(key);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

export function keep(key: string, value: unknown, store: Store = "localStorage"): void {
  try {
    globalThis[store].setItem(key, JSON.stringify(value));
  } catch {
    // the value is known until the page is closed
  }
}
