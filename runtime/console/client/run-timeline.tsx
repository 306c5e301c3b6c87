import type { AttemptRow } from "../schemas.ts";
import { took } from "./parts.tsx";
import { spansOf } from "./run-spans.ts";

/** Spans that are drawn. */
const mostSpans = 60;

/** When a delivery of a run waited, ran and called, on one axis. */
export function Timeline({ attempts, of }: { attempts: readonly AttemptRow[]; of: string }) {
  const all = spansOf(attempts);
  const end = Math.max(...all.map(({ from, ms }) => from + ms), 1);
  if (all.length === 0) return null;
  return (
    <section class="timeline" aria-label={`Timeline${of}`}>
      <h2>Timeline{of}</h2>
      <ol>
        {all.slice(0, mostSpans).map(({ name, kind, from, ms, isBad }, index) => (
          <li key={String(index)} class={kind}>
            <span class="name">{name}</span>
            <svg aria-hidden="true" focusable="false">
              <rect
                class={isBad ? "bad" : kind}
                x={`${(100 * from) / end}%`}
                width={`${Math.max(0.4, (100 * ms) / end)}%`}
                height="100%"
                rx="2"
              />
            </svg>
            <span class="span">
              {took(ms)} <span class="quiet">at {took(from)}</span>
            </span>
          </li>
        ))}
      </ol>
      {all.length > mostSpans && <p class="quiet">{all.length - mostSpans} further calls are in the table.</p>}
    </section>
  );
}
