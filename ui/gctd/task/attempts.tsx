// The attempts of a task, each with its stages and its log.

import { useEffect, useRef, useState } from "preact/hooks";
import { read, statusOf } from "../../kit/data/http";
import { useAgain, useLoad } from "../../kit/data/load";
import { Pill } from "../../kit/parts/pill";
import { Copy, ErrorPanel, Skeleton } from "../../kit/parts/states";
import { duration, Took, useNow } from "../../kit/parts/time";
import { canCancel } from "../data/actions";
import type { Attempt, Task } from "../data/types";

export function Attempts({ task, version }: { task: Task; version: number }) {
  const { value, error, reload } = useLoad((signal) => read<Attempt[]>(`/api/tasks/${task.id}/attempts`, signal), [task.id]);
  const [chosen, setChosen] = useState<number | null>(null);
  useAgain(reload, version);
  if (error && !value) return <ErrorPanel error={error} retry={reload} />;
  if (!value) return <Skeleton />;
  if (value.length === 0) return <p class="muted">{canCancel(task) ? "No attempt yet: it waits for a worker." : "No worker began it."}</p>;
  const shown = value.find((attempt) => attempt.attempt === chosen) ?? value.at(-1);
  return (
    <section aria-labelledby="attempts-title">
      <h3 id="attempts-title">Attempts</h3>
      <ol class="attempts">
        {value.map((attempt) => (
          <li key={attempt.attempt}>
            <button type="button" aria-pressed={attempt === shown} onClick={() => setChosen(attempt.attempt)}>
              <strong>{attempt.attempt}</strong>
              <Pill state={attempt.outcome ?? "running"} />
              <span class="muted">{attempt.worker}</span>
              <span class="end">
                <Took from={attempt.started_at} to={attempt.ended_at} />
              </span>
            </button>
          </li>
        ))}
      </ol>
      {shown && <Timeline attempt={shown} />}
      {shown?.reason && <p class="reason">{shown.reason}</p>}
      {shown && <Log key={`${task.id} ${shown.attempt}`} task={task.id} attempt={shown.attempt} />}
    </section>
  );
}

/** The stages of an attempt, with their durations. */
function Timeline({ attempt }: { attempt: Attempt }) {
  const present = useNow();
  if (attempt.stages.length === 0) return null;
  const end = attempt.ended_at ? Date.parse(attempt.ended_at) : present;
  const spans = attempt.stages.map((stage) => ({
    ...stage,
    took: stage.duration_ms ?? Math.max(0, end - Date.parse(stage.started_at)),
  }));
  const all = Math.max(1, spans.reduce((sum, span) => sum + span.took, 0));
  return (
    <ol class="timeline" aria-label="Stages">
      {spans.map((span, index) => (
        <li key={`${span.stage} ${index}`} class={span.duration_ms === null && !attempt.ended_at ? "lasts" : ""}>
          <span class="stage">{span.stage}</span>
          <span class="bar" aria-hidden="true">
            <span
              style={{
                marginInlineStart: `${(100 * spans.slice(0, index).reduce((sum, before) => sum + before.took, 0)) / all}%`,
                width: `${Math.max(0.5, (100 * span.took) / all)}%`,
              }}
            />
          </span>
          <span class="number">{duration(span.took)}</span>
        </li>
      ))}
    </ol>
  );
}

const MOST_TEXT = 400_000;
/** Milliseconds until a log that was refused is asked for again. */
const AGAIN = 2_000;

/** The log of an attempt, line by line as it arrives. After a lost connection or a refusal it resumes behind the last line. */
function Log({ task, attempt }: { task: string; attempt: number }) {
  const [text, setText] = useState("");
  const [state, setState] = useState<"reads" | "follows" | "cut" | "ended" | "none">("reads");
  const box = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    let waiting = "";
    let frame = 0;
    let timer = 0;
    let last = "0";
    let isOver = false;
    let source: EventSource;
    const url = () => `/api/tasks/${task}/attempts/${attempt}/log/sse?last_event_id=${last}`;
    const open = () => {
      source = new EventSource(url());
      source.addEventListener("open", () => setState("follows"));
      source.addEventListener("log", (event: MessageEvent<string>) => {
        last = event.lastEventId;
        waiting += (JSON.parse(event.data) as { text: string }).text;
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          const more = waiting;
          waiting = "";
          setText((before) => (before + more).slice(-MOST_TEXT));
        });
      });
      source.addEventListener("end", () => {
        source.close();
        setState("ended");
      });
      source.addEventListener("error", () => {
        setState("cut");
        if (source.readyState === EventSource.CLOSED) void refused();
      });
    };
    const refused = async () => {
      const status = await statusOf(url());
      if (isOver) return;
      if (status === 404) setState("none");
      else timer = window.setTimeout(open, AGAIN);
    };
    open();
    return () => {
      isOver = true;
      source.close();
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [task, attempt]);
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = () => {
    const element = box.current;
    if (element) atEnd.current = element.scrollTop + element.clientHeight > element.scrollHeight - 24;
  };
  return (
    <section aria-labelledby="log-title">
      <h3 id="log-title">
        Log {state === "follows" && <span class="muted">live</span>} {text && <Copy text={text} what="log" />}
      </h3>
      {state === "cut" && <p class="bad">{text ? "The rest of the log" : "The log"} cannot be read now. It is tried again.</p>}
      {state === "none" && !text ? (
        <p class="muted">No log is kept of this attempt.</p>
      ) : (
        <pre class="log" ref={box} onScroll={scrolled} tabIndex={0} aria-label="Log" role="log">
          {text}
        </pre>
      )}
    </section>
  );
}
