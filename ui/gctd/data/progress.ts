// Progress of the tests of a running attempt, from its log: `go test` writes one line when a package has ended.

import { useEffect, useState } from "preact/hooks";

export interface Progress {
  /** Packages whose tests have ended, those without tests included. */
  ended: number;
  failed: number;
  /** The package that ended last. */
  last: string;
}

const ENDED = /^(ok {2}|FAIL|\? {3}|)\t(\S+)\t?/;

/** Take the lines of a log into account. The same package counts once. */
export function heard(lines: readonly string[], packages: Map<string, boolean>): void {
  for (const line of lines) {
    const found = ENDED.exec(line);
    if (found?.[2]) packages.set(found[2], (packages.get(found[2]) ?? false) || found[1] === "FAIL");
  }
}

/** Follow the log of an attempt; null while no package is known. */
export function useProgress(task: string, attempt: number): Progress | null {
  const [progress, setProgress] = useState<Progress | null>(null);
  useEffect(() => {
    const packages = new Map<string, boolean>();
    let rest = "";
    setProgress(null);
    const source = new EventSource(`/api/tasks/${task}/attempts/${attempt}/log/sse`);
    source.addEventListener("log", (event: MessageEvent<string>) => {
      const lines = (rest + (JSON.parse(event.data) as { text: string }).text).split("\n");
      rest = lines.pop() ?? "";
      heard(lines, packages);
      if (packages.size === 0) return;
      setProgress({ ended: packages.size, failed: [...packages.values()].filter(Boolean).length, last: [...packages.keys()].at(-1) ?? "" });
    });
    source.addEventListener("end", () => source.close());
    return () => source.close();
  }, [task, attempt]);
  return progress;
}
