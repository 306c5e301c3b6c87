import { useState } from "preact/hooks";
import type { z } from "zod";
import type { PauseAnswer } from "../../../observe/control-api.ts";
import type { functionDetailSchema, runSearchSchema, TriggerWay } from "../../schemas.ts";
import { post, useData } from "../api.tsx";
import { Limits, Rights, SourceCode, TimeSpent } from "../function-facts.tsx";
import { act, Code, Confirm, Ready, Said, sentence, total, When } from "../parts.tsx";
import { RedeliverButton } from "../redeliver.tsx";
import { letterCount } from "../replay-all.tsx";
import { type Change, Changes, Revisions, usePause } from "../revisions.tsx";
import { Denied, deniedId, useRights } from "../rights.tsx";
import { SeriesPlots, useSeries } from "../series.tsx";
import { FunctionState } from "./overview.tsx";
import { RunTable } from "./runs.tsx";

type Detail = z.infer<typeof functionDetailSchema>;

/** The width of the plots. */
const plotMinutes = 60;

export function FunctionPage({ name }: { name: string }) {
  const of = encodeURIComponent(name);
  const loaded = useData<Detail>(`/api/functions/${of}`, ["functions", "runs"]);
  const series = useSeries(plotMinutes, name);
  const runs = useData<z.infer<typeof runSearchSchema>>(`/api/runs?limit=10&function=${of}`, ["runs"]);
  return (
    <>
      <h1>{name}</h1>
      <Ready of={loaded}>
        {(detail) => (
          <>
            <Standing detail={detail} />
            {detail.ways.map((way) => (
              <Way key={way.trigger} way={way} />
            ))}
            {series.data && <SeriesPlots of={series.data} minutes={plotMinutes} name={name} />}
            <section aria-labelledby="last-runs">
              <h2 id="last-runs">Last runs</h2>
              {runs.data && runs.data.runs.length > 0 ? (
                <>
                  <RunTable runs={runs.data.runs} isOfOne />
                  <p>
                    <a href={`/runs?function=${of}`}>All runs of {name}</a>
                  </p>
                </>
              ) : (
                <p class="quiet">No attempt has ended since the runtime began.</p>
              )}
            </section>
            <TimeSpent name={name} />
            <Revisions name={name} />
            <Changes name={name} />
            <Limits detail={detail} />
            <Rights manifest={detail.manifest} />
            {detail.manifest && <SourceCode name={name} />}
            {detail.manifest && (
              <details>
                <summary>Manifest as understood, with all defaults</summary>
                <Code label="Manifest">{JSON.stringify(detail.manifest, null, 2)}</Code>
              </details>
            )}
          </>
        )}
      </Ready>
    </>
  );
}

function Standing({ detail: { function: report } }: { detail: Detail }) {
  const { name, message, reason, paused, queued, spilled, inFlight, requeued = 0, deadLetters = 0 } = report;
  const [asking, setAsking] = useState<"pause" | "resume">();
  const pause = usePause(paused === "command" ? name : undefined);
  const rights = useRights(name);
  const path = `/api/functions/${encodeURIComponent(name)}`;
  const change = (action: "pause" | "resume", why: string) => {
    setAsking(undefined);
    void act(async () => (await post<PauseAnswer>(`${path}/${action}`, {}, why)).says);
  };
  return (
    <>
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <FunctionState of={report} />
          {message !== undefined && (
            <div class="message">
              <Said>{message}</Said>
            </div>
          )}
          {pause && <PausedBy of={pause} />}
        </dd>
        <dt>Events</dt>
        <dd>
          {total(inFlight)} running, {total(queued, spilled)} waiting{requeued > 0 && `, ${requeued} to run later`}
          {deadLetters > 0 && (
            <>
              , <a href={`/dead-letters?function=${encodeURIComponent(name)}`}>{letterCount(deadLetters)}</a>
            </>
          )}
        </dd>
      </dl>
      <p class="actions">
        {paused === undefined && reason !== "Suspended" && (
          <button
            type="button"
            disabled={!rights.mayWrite}
            aria-describedby={deniedId}
            onClick={() => setAsking("pause")}
          >
            Pause
          </button>
        )}
        {reason !== "Suspended" && <RedeliverButton name={name} rights={rights} />}
        {paused === "command" && (
          <button
            type="button"
            class="primary"
            disabled={!rights.mayWrite}
            aria-describedby={deniedId}
            onClick={() => setAsking("resume")}
          >
            Resume
          </button>
        )}
        {paused === "manifest" && (
          <span class="quiet">Its manifest pauses it: remove `paused: true` to resume it.</span>
        )}
        {paused === "set" && (
          <span class="quiet">The FunctionSet of its set pauses it: set its `spec.paused` to false to resume it.</span>
        )}
        <Denied of={rights} />
      </p>
      {asking === "resume" && (
        <Confirm
          title={`Resume ${name}?`}
          yes={`Resume ${name}`}
          onYes={(why) => change("resume", why)}
          onNo={() => setAsking(undefined)}
        >
          {pause ? <PausedBy of={pause} /> : <p>Who paused it, and why, is not on record.</p>}
          <p>{total(queued, spilled)} events wait. They run at once, in order.</p>
        </Confirm>
      )}
      {asking === "pause" && (
        <Confirm
          title={`Pause ${name}?`}
          yes={`Pause ${name}`}
          onYes={(why) => change("pause", why)}
          onNo={() => setAsking(undefined)}
        >
          <p>No further attempt begins. Events wait in order until you resume it, also across restarts.</p>
        </Confirm>
      )}
    </>
  );
}

/** Who paused it, and why. */
function PausedBy({ of: { at, who, reason } }: { of: Change }) {
  return (
    <p>
      Paused at <When at={at} /> by {who}
      {reason === undefined ? ", without a reason." : `: ${sentence(reason)}`}
    </p>
  );
}

function Way({ way: { trigger, steps, outcomes } }: { way: TriggerWay }) {
  const title = `way-${trigger}`;
  const ends = [
    ["ok", outcomes.ok],
    [outcomes.retry === 1 ? "failed attempt" : "failed attempts", outcomes.retry],
    [outcomes.deadLetter === 1 ? "dead letter" : "dead letters", outcomes.deadLetter],
    ["dropped", outcomes.dropped],
  ] as const;
  return (
    <section aria-labelledby={title}>
      <h2 id={title}>The way of an event: {trigger}</h2>
      <p class="quiet">
        {outcomes.received} events ended since the start, {outcomes.filtered} of them filtered. Events that the API
        server leaves out are not counted.
      </p>
      <ol class="way">
        {steps.map(({ name, rule, heldBack, passed }) => (
          <li key={`${name} ${rule}`} class={name === "handler" ? "handler" : ""}>
            <h3>{name}</h3>
            <code>{rule}</code>
            {name !== "handler" && <p class="passed">{passed} passed</p>}
            {heldBack !== undefined && (
              <p class={heldBack > 0 ? "held" : "quiet"}>
                {heldBack === 0 ? "nothing filtered" : `${heldBack} filtered`}
              </p>
            )}
            {name === "handler" && (
              <p>
                {ends
                  .filter(([text, count]) => count > 0 || text === "ok")
                  .map(([text, count]) => `${count} ${text}`)
                  .join(", ")}
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
