// A list as a whole: read page by page at the beginning and whenever events may have been missed. Events keep it up to date.

import { readPages } from "./http";
import type { Stream } from "./live";

interface Whole<Row> {
  stream: Stream;
  path: string;
  /** No more are read. */
  most?: number;
  idOf: (row: Row) => string;
  /** The known positions may be of another log: each row that is read from now on replaces the known one. */
  forget: () => void;
  /** Take a row as it was at that position of the log, unless a later one is known. */
  put: (row: Row, sequence: number) => void;
  /** The items at that position have been read, all or `most` of them: other items leave the list, unless they are newer. */
  leave: (found: ReadonlySet<string>, sequence: number, isWhole: boolean) => void;
  publish: (change: { read?: true; error: unknown }) => void;
}

/** A function that rereads the list. The last of several readings counts, and earlier ones end. */
export function rereading<Row>({ stream, path, most = Infinity, idOf, forget, put, leave, publish }: Whole<Row>): () => Promise<void> {
  let reading: AbortController | null = null;
  return async () => {
    reading?.abort();
    const controller = new AbortController();
    reading = controller;
    if (!stream.last.value) forget(); // the service cannot continue after the last event: its log may have been restored
    const found = new Set<string>();
    let from = Infinity;
    try {
      const isWhole = await readPages<Row>(
        path,
        (page, sequence) => {
          stream.startAt(sequence);
          from = Math.min(from, sequence);
          for (const row of page) {
            found.add(idOf(row));
            put(row, sequence);
          }
          publish({ read: true, error: null });
        },
        { signal: controller.signal, most },
      );
      leave(found, from, isWhole);
      publish({ read: true, error: null });
    } catch (error) {
      if (!controller.signal.aborted) publish({ error });
    }
  };
}
