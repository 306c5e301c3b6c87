import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Loaded } from "./api.tsx";
import { Refusal } from "./api.tsx";

/** Shows data, or that it is loading, or why it cannot be had. */
export function Ready<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  const { data, error } = of;
  return (
    <>
      {error !== undefined && (
        <p class="notice bad" role="alert">
          {sentence(error)} {data !== undefined && "What is shown is from before."}
        </p>
      )}
      {data !== undefined ? children(data) : error === undefined && <p class="quiet">Loading …</p>}
    </>
  );
}

/** The sum of counts as text; "unknown" if one is not known. */
export const total = (...counts: readonly (number | undefined)[]): string =>
  counts.includes(undefined) ? "unknown" : String(counts.reduce((sum = 0, each = 0) => sum + each, 0));

/**
 * A table with a caption. It scrolls sideways where it is too wide. On a phone each row is a card, in which a cell has its column's head before
 * it.
 */
export function Table({
  caption,
  heads,
  children,
}: {
  caption: string;
  heads: readonly Head[];
  children: ComponentChildren;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  useLayoutEffect(() => {
    for (const { cells } of body.current?.rows ?? []) {
      for (const [index, cell] of [...cells].entries()) {
        const head = heads[index] ?? "";
        const text = typeof head === "string" ? head : head.text;
        if (cell.dataset.head !== text) cell.dataset.head = text;
      }
    }
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: -- a region that scrolls can be scrolled by keys
    <section class="scroll" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => {
              const { text, className } = typeof head === "string" ? { text: head, className: "" } : head;
              return (
                <th key={text} scope="col" class={className}>
                  {text}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody ref={body}>{children}</tbody>
      </table>
    </section>
  );
}

/** A column's head. `className`: `number`, or `wide` for one whose empty cells a phone leaves out. */
export type Head = string | { readonly text: string; readonly className: string };
export const number = (text: string): Head => ({ text, className: "number" });
export const wide = (text: string): Head => ({ text, className: "wide" });
export const wideNumber = (text: string): Head => ({ text, className: "number wide" });

/** A time in the reader's zone, with the exact one on hover. */
export function When({ at }: { at: string | undefined }) {
  if (at === undefined) return <>–</>;
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  const text = isToday ? date.toLocaleTimeString() : date.toLocaleString();
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}

/** A text of the runtime. The times in it are shown in the reader's zone. */
export function Said({ children }: { children: string }) {
  const parts = children.split(/(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/);
  return <>{parts.map((part, index) => (index % 2 === 0 ? part : <When key={part} at={part} />))}</>;
}

const outcomeWords = {
  ok: "ok",
  failed: "failed",
  permanent: "failed, no retry",
  interrupted: "interrupted",
} as const;

export function Outcome({ of }: { of: keyof typeof outcomeWords }) {
  const look = of === "ok" ? "good" : of === "interrupted" ? "warn" : "bad";
  return <span class={`badge ${look}`}>{outcomeWords[of]}</span>;
}

export const took = (ms: number): string =>
  ms < 1 ? "< 1 ms" : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

/** How long an attempt took. The end of one whose process was killed is not known. */
export const tookOf = ({ outcome, durationMs }: { readonly outcome: string; readonly durationMs: number }): string =>
  outcome === "interrupted" && durationMs === 0 ? "–" : took(durationMs);

export const bytes = (count: number): string =>
  count < 1024
    ? `${count} B`
    : count < 2 ** 20
      ? `${(count / 1024).toFixed(1)} KiB`
      : count < 2 ** 30
        ? `${(count / 2 ** 20).toFixed(1)} MiB`
        : `${(count / 2 ** 30).toFixed(1)} GiB`;

export const age = (seconds: number): string =>
  seconds < 1 ? "–" : seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;

/** A sentence whose words between backticks are code. */
export function Words({ children }: { children: string }) {
  return (
    <span class="words">
      {children.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={part}>{part}</code>))}
    </span>
  );
}

/** Text of a program: code, a stack, JSON. */
export function Code({ label, children }: { label: string; children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: -- a region that scrolls can be scrolled by keys
    <section class="code" aria-label={label} tabIndex={0}>
      <pre>{children}</pre>
    </section>
  );
}

/** Result of the last action; a live region reads it out. */
export const lastResult = signal<ActionResult | undefined>(undefined);

/** The result of an action that worked, although something in it may have failed. */
export interface ActionResult {
  readonly text: string;
  readonly isBad: boolean;
}

/** Runs an action and shows its result. */
export async function act(action: () => Promise<string | ActionResult>): Promise<void> {
  lastResult.value = undefined;
  try {
    const result = await action();
    const { text, isBad } = typeof result === "string" ? { text: result, isBad: false } : result;
    lastResult.value = { text: sentence(text), isBad };
  } catch (error) {
    const text = error instanceof Refusal ? error.message : "the runtime does not answer";
    lastResult.value = { text: sentence(text), isBad: true };
  }
}

/** A button that runs an action once at a time. */
export function ActionButton(props: {
  children: ComponentChildren;
  action: () => Promise<string>;
  class?: string;
  disabled?: boolean;
}) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    await act(props.action);
    setBusy(false);
  };
  return (
    <button type="button" class={props.class} disabled={props.disabled || isBusy} onClick={run}>
      {props.children}
    </button>
  );
}

/**
 * A question before a change, with a field for the reason, which stands in the list of changes. `onYes` takes the reason; empty without one.
 * Afterwards the focus is where it was, or in the page.
 */
export function Confirm(props: {
  title: string;
  children: ComponentChildren;
  yes: string;
  isDangerous?: boolean;
  /** Something has to be filled in first. */
  isIncomplete?: boolean;
  onYes: (reason: string) => void;
  onNo: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  useEffect(() => {
    const { current } = dialog;
    const before = document.activeElement;
    current?.showModal();
    return () => {
      current?.close();
      if (before instanceof HTMLElement && before.isConnected && !before.matches(":disabled")) before.focus();
      else document.getElementById("main")?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="question" onCancel={props.onNo}>
      <h2 id="question">{props.title}</h2>
      {props.children}
      <div class="filters reason">
        <label>
          <span>Reason (optional)</span>
          <input
            value={reason}
            maxLength={500}
            autocomplete="off"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      </div>
      <p class="actions">
        <button type="button" onClick={props.onNo}>
          Cancel
        </button>
        <button
          type="button"
          class={props.isDangerous ? "danger" : "primary"}
          disabled={props.isIncomplete}
          onClick={() => props.onYes(reason.trim())}
        >
          {props.yes}
        </button>
      </p>
    </dialog>
  );
}

/** A labelled field of a filter. Its value is in the URL. */
export function Filter(props: {
  label: string;
  name: string;
  value: string;
  options?: readonly (readonly [value: string, text: string])[];
  /** What is typed in. */
  hint?: string;
  onChange: (changes: Record<string, string>) => void;
}) {
  const { label, name, value, options, hint, onChange } = props;
  const take = (event: Event) => onChange({ [name]: (event.currentTarget as HTMLInputElement).value });
  return (
    <label htmlFor={`filter-${name}`}>
      <span>{label}</span>
      {options ? (
        <select id={`filter-${name}`} name={name} value={value} onChange={take}>
          {options.map(([each, text]) => (
            <option key={each} value={each} selected={each === value}>
              {text}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={`filter-${name}`}
          name={name}
          value={value}
          placeholder={hint}
          onInput={take}
          autocomplete="off"
          spellcheck={false}
        />
      )}
    </label>
  );
}
