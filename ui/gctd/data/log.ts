// The event log as a page reads it: from its end backwards, and how many events came since.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../../kit/data/http";
import { sequenceOf } from "../../kit/data/positions";
import { stream } from "./live";

export interface Entry {
  position: string;
  sequence: number;
  aggregate: string;
  type: string | null;
  version: number | null;
  at: string | null;
  data: unknown;
  commit: string | null;
  correlation: string | null;
  causation: string | null;
  actor: string | null;
  problem: string | null;
}

export interface Page {
  from: number;
  to: number;
  end: number;
  events: Entry[];
}

export interface Reading {
  entries: readonly Entry[];
  /** From which sequence on it was looked at, and the end of the log then. */
  from: number;
  end: number;
  next: string | null;
}

interface LogReading {
  reading: Reading | null;
  error: unknown;
  busy: boolean;
  /** How many events are behind the end of the reading. */
  newer: number;
  readAgain: () => void;
  readOlder: (known: Reading) => void;
}

/** Read the events at an address: at once, and if events may have been missed, since the log may then be another one. */
export function useLog(path: string): LogReading {
  const [reading, setReading] = useState<Reading | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [newer, setNewer] = useState(0);
  const arrived = useRef<number[]>([]);
  const end = useRef(0);
  const reader = useRef(new AbortController());
  const read = async (address: string, known: Reading | null) => {
    reader.current.abort();
    reader.current = new AbortController();
    const { signal } = reader.current;
    setBusy(true);
    setError(null);
    try {
      const { body, next } = await ask<Page>("GET", address, { signal });
      setReading({ entries: [...(known?.entries ?? []), ...body.events], from: body.from, end: known?.end ?? body.end, next });
      if (known === null) end.current = body.end;
      count([]);
    } catch (reason) {
      if (!signal.aborted) setError(reason);
    } finally {
      if (!signal.aborted) setBusy(false);
    }
  };
  /** The events that came while the log was read count as well, if the answer does not have them. */
  const count = (sequences: readonly number[]) => {
    arrived.current.push(...sequences);
    arrived.current = arrived.current.filter((sequence) => sequence > end.current);
    setNewer(arrived.current.length);
  };
  const readAgain = () => void read(path, null);
  useEffect(() => {
    readAgain();
    const stops = [
      stream.listen((events) => count(events.map(({ id }) => sequenceOf(id)))),
      stream.onResync(() => {
        [arrived.current, end.current] = [[], 0];
        readAgain();
      }),
    ];
    return () => {
      reader.current.abort();
      for (const stop of stops) stop();
    };
  }, [path]);
  return { reading, error, busy, newer, readAgain, readOlder: (known) => known.next && void read(known.next, known) };
}
