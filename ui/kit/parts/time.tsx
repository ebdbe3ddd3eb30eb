// Times: how long ago, how long it took; the exact time in UTC where the pointer rests.

import { useEffect } from "preact/hooks";
import { Cell, useCell } from "../data/cell";

/** Now, in milliseconds, once a second while somebody looks. */
export const now = new Cell(Date.now());

let users = 0;
let timer = 0;

export function useNow(): number {
  useEffect(() => {
    if (users++ === 0) timer = window.setInterval(() => now.set(Date.now()), 1_000);
    return () => {
      if (--users === 0) clearInterval(timer);
    };
  }, []);
  return Math.max(useCell(now), 0);
}

/** `0.4 s`, `41 s`, `2 m 03 s`, `3 h 05 m`, `4 d`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (number: number) => String(number).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
  return `${Math.floor(minutes / 1440)} d`;
}

/** `now`, `12 s`, `5 m`, `3 h`, `4 d` before `at`. */
export function age(at: number, present: number): string {
  const seconds = Math.floor((present - at) / 1000);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** `2026-11-20 12:24:04 UTC`. */
export function utc(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

/** How long ago a time (RFC 3339) was. */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={utc(at)}>
      {age(Date.parse(at), useNow())}
    </time>
  );
}

/** How long it took from one time to another, or to now if that is null. */
export function Took({ from, to }: { from: string; to: string | null }) {
  const present = useNow();
  return <>{duration((to === null ? present : Date.parse(to)) - Date.parse(from))}</>;
}
