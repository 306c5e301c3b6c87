import type { AttemptRow, RunDetail } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { bytes, Code, number, Outcome, Ready, Table, took, tookOf, When, wideNumber } from "../parts.tsx";
import { valueText } from "../plot.tsx";
import { RedeliverRun } from "../redeliver.tsx";
import { Denied, useRights } from "../rights.tsx";
import { functionHref } from "../route.tsx";
import { ReceivedEvent } from "../run-event.tsx";
import { deliveriesOf } from "../run-spans.ts";
import { Timeline } from "../run-timeline.tsx";
import { Frame } from "./errors.tsx";

export function RunPage({ id, name }: { id: string; name: string }) {
  const path = `/api/runs/${encodeURIComponent(id)}?function=${encodeURIComponent(name)}`;
  const loaded = useData<RunDetail>(path, ["runs", "dead-letters"]);
  const rights = useRights(name);
  const [first] = loaded.data?.attempts ?? [];
  return (
    <>
      <h1>Run</h1>
      <dl class="facts">
        <dt>Function</dt>
        <dd>
          <a href={functionHref(name)}>{name}</a>
        </dd>
        <dt>Event</dt>
        <dd class="id">{id}</dd>
        {first && <EventFacts of={first} />}
      </dl>
      <Ready of={loaded}>
        {({ attempts, log, error, deadLetter, elsewhere }) => (
          <>
            {elsewhere !== undefined && <p class="notice warn">This is of the shards here alone: {elsewhere}.</p>}
            <p class="actions">
              <RedeliverRun id={id} name={name} of={first} letter={deadLetter} rights={rights} />
              {deadLetter !== undefined && (
                <a class="button" href={`/dead-letters?function=${encodeURIComponent(name)}&show=${deadLetter}`}>
                  Its dead letter {deadLetter}
                </a>
              )}
              <Denied of={rights} />
            </p>
            <Attempts attempts={attempts} />
            {deliveriesOf(attempts).map((delivery, index, all) => (
              <Timeline
                key={delivery[0]?.at}
                attempts={delivery}
                of={all.length === 1 ? "" : index === 0 ? ", first delivery" : ", delivered again"}
              />
            ))}
            <Calls attempts={attempts} />
            {error && (
              <section aria-labelledby="error">
                <h2 id="error">{attempts.at(-1)?.outcome === "ok" ? "The error before it went well" : "Error"}</h2>
                <p class="message">
                  <strong>{error.code ?? error.name}</strong>: {error.message}
                </p>
                <Frame of={error} label="The line that failed" />
                {error.stack !== "" && (
                  <details open={error.frame === undefined}>
                    <summary>Stack</summary>
                    <Code label="Stack">{error.stack}</Code>
                  </details>
                )}
              </section>
            )}
            <ReceivedEvent id={id} name={name} rights={rights} />
            <section aria-labelledby="log">
              <h2 id="log">Log</h2>
              {log.length === 0 ? (
                <p class="quiet">It logged nothing, or its lines are no longer on record.</p>
              ) : (
                <LogLines log={log} />
              )}
            </section>
          </>
        )}
      </Ready>
    </>
  );
}

/** The object, its state, and why the event is not one that a watch delivered. */
function EventFacts({ of }: { of: AttemptRow }) {
  const { type, kind, object, resourceVersion, initial, synthetic, redelivered, trace, causes = [], batch = [] } = of;
  const notes = [
    ...(initial ? ["the object existed when the function was deployed"] : []),
    ...(synthetic === undefined ? [] : [`synthetic${synthetic === "" ? "" : `: ${synthetic}`}`]),
    ...(redelivered ? ["an earlier delivery may have run"] : []),
  ];
  return (
    <>
      <dt>Object</dt>
      <dd>
        {type} {kind} {object}
      </dd>
      {resourceVersion !== "" && resourceVersion !== "0" && (
        <>
          <dt>Resource version</dt>
          <dd class="id">{resourceVersion}</dd>
        </>
      )}
      {notes.length > 0 && (
        <>
          <dt>Delivered</dt>
          <dd>{notes.join("; ")}</dd>
        </>
      )}
      {trace !== undefined && (
        <>
          <dt>Trace</dt>
          <dd class="id">{trace}</dd>
        </>
      )}
      {causes.length > 0 && (
        <>
          <dt>Woken by</dt>
          <dd>{causes.join(", ")}</dd>
        </>
      )}
      {batch.length > 1 && (
        <>
          <dt>Events</dt>
          <dd class="id">{batch.join(", ")}</dd>
        </>
      )}
    </>
  );
}

const attemptHeads = [
  number("Attempt"),
  "Outcome",
  "Ended",
  wideNumber("Waited"),
  number("Took"),
  wideNumber("CPU"),
  wideNumber("Heap"),
  wideNumber("Calls"),
];

function Attempts({ attempts }: Pick<RunDetail, "attempts">) {
  if (attempts.length === 0) {
    return <p class="quiet">No attempt of it is on record: it waits, or it is older than the history.</p>;
  }
  const again = new Set(
    deliveriesOf(attempts)
      .slice(1)
      .map(([first]) => first),
  );
  return (
    <Table caption="Attempts" heads={attemptHeads}>
      {attempts.map((each) => (
        <tr key={`${each.attempt} ${each.at}`}>
          <td class="number">{each.attempt}</td>
          <td>
            <Outcome of={each.outcome} />
            {again.has(each) && <span class="quiet whole"> delivered again</span>}
          </td>
          <td>
            <When at={each.at} />
          </td>
          <td class="number wide">{each.waitedMs === undefined ? "–" : took(each.waitedMs)}</td>
          <td class="number">{tookOf(each)}</td>
          <td class="number wide">{each.cpuMs === undefined ? "–" : `${valueText(each.cpuMs)} ms`}</td>
          <td class="number wide" title="The heap of its isolate, when it was last measured">
            {each.heapBytes === undefined ? "–" : bytes(each.heapBytes)}
          </td>
          <td class="number wide">{each.calls ?? 0}</td>
        </tr>
      ))}
    </Table>
  );
}

const callHeads = [
  wideNumber("Attempt"),
  "Call",
  "Object or host",
  "Answer",
  number("Took"),
  wideNumber("Sent"),
  wideNumber("Received"),
];

/** The calls of `ctx.kube` and `ctx.fetch`, in the order in which they ended. */
function Calls({ attempts }: Pick<RunDetail, "attempts">) {
  const listed = attempts.flatMap(({ attempt, listedCalls = [] }) =>
    listedCalls.map((call, index) => ({ ...call, attempt, key: `${attempt} ${index}` })),
  );
  const total = attempts.reduce((sum, { calls = 0 }) => sum + calls, 0);
  if (attempts.every(({ listedCalls }) => listedCalls === undefined)) return null;
  if (listed.length === 0) return <p class="quiet">It called neither the API server nor another host.</p>;
  return (
    <>
      <Table caption="Calls" heads={callHeads}>
        {listed.map(({ key, attempt, operation, target, result, status, at, durationMs, sent, received }) => (
          <tr key={key}>
            <td class="number wide">{attempt}</td>
            <td title={at}>
              <span class="whole">{operation}</span>
            </td>
            <td>{target}</td>
            <td>
              <span class={`badge ${result === "ok" ? "good" : "bad"}`}>
                {[status, result === "ok" && status !== undefined ? "" : result].filter(Boolean).join(" ")}
              </span>
            </td>
            <td class="number">{took(durationMs)}</td>
            <td class="number wide">{bytes(sent)}</td>
            <td class="number wide">{bytes(received)}</td>
          </tr>
        ))}
      </Table>
      {total > listed.length && <p class="quiet">{total - listed.length} further calls are not listed.</p>}
    </>
  );
}

function LogLines({ log }: Pick<RunDetail, "log">) {
  return (
    <ol class="log">
      {log.map(({ number: key, time, level, message, fields }) => (
        <li key={key}>
          <When at={time} /> <span class={`level ${level}`}>{level}</span> {message}
          {Object.entries(fields).map(([name, value]) => (
            <span key={name} class="field">
              {name}={typeof value === "string" ? value : JSON.stringify(value)}
            </span>
          ))}
        </li>
      ))}
    </ol>
  );
}
