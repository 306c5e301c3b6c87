import type { Redeliveries } from "../../../observe/control-api.ts";
import type { RunDetail } from "../../schemas.ts";
import { post, useData } from "../api.tsx";
import { ActionButton, Code, number, Outcome, Ready, Table, took, When, wide } from "../parts.tsx";
import { functionHref } from "../route.tsx";

export function RunPage({ id, name }: { id: string; name: string }) {
  const path = `/api/runs/${encodeURIComponent(id)}?function=${encodeURIComponent(name)}`;
  const loaded = useData<RunDetail>(path, ["runs", "dead-letters"]);
  const [first] = loaded.data?.attempts ?? [];
  const redeliver = async () => {
    const { told } = await post<Redeliveries>(`/api/functions/${encodeURIComponent(name)}/redeliver`, { run: id });
    return told === 0 ? "nothing was delivered again" : "the event is delivered again";
  };
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
        {first && (
          <>
            <dt>Object</dt>
            <dd>
              {first.type} {first.kind} {first.object}
            </dd>
          </>
        )}
      </dl>
      <Ready of={loaded}>
        {({ attempts, log, error, deadLetter, elsewhere }) => (
          <>
            {elsewhere !== undefined && <p class="notice warn">This is of the shards here alone: {elsewhere}.</p>}
            <p class="actions">
              <ActionButton action={redeliver}>Redeliver</ActionButton>
              {deadLetter !== undefined && (
                <a class="button" href={`/dead-letters?function=${encodeURIComponent(name)}&show=${deadLetter}`}>
                  Its dead letter {deadLetter}
                </a>
              )}
            </p>
            <Attempts attempts={attempts} />
            {error && (
              <section aria-labelledby="error">
                <h2 id="error">Error</h2>
                <p class="message">
                  <strong>{error.code ?? error.name}</strong>: {error.message}
                </p>
                {error.frame !== undefined && <Code label="The line that failed">{error.frame}</Code>}
                {error.stack !== "" && (
                  <details open={error.frame === undefined}>
                    <summary>Stack</summary>
                    <Code label="Stack">{error.stack}</Code>
                  </details>
                )}
              </section>
            )}
            <section aria-labelledby="log">
              <h2 id="log">Log</h2>
              {log.length === 0 ? (
                <p class="quiet">It logged nothing, or its lines are no longer in memory.</p>
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

function Attempts({ attempts }: Pick<RunDetail, "attempts">) {
  if (attempts.length === 0) {
    return <p class="quiet">No attempt of it is in memory: it waits, or the runtime has started since.</p>;
  }
  const longest = Math.max(...attempts.map(({ durationMs }) => durationMs), 1);
  return (
    <Table caption="Attempts" heads={[number("Attempt"), "Outcome", "Ended", number("Took"), wide("Duration")]}>
      {attempts.map((each) => (
        <tr key={`${each.attempt} ${each.at}`}>
          <td class="number">{each.attempt}</td>
          <td>
            <Outcome of={each.outcome} />
          </td>
          <td>
            <When at={each.at} />
          </td>
          <td class="number">{took(each.durationMs)}</td>
          <td class="wide">
            <meter
              class="bar"
              min={0}
              max={longest}
              value={each.durationMs}
              aria-label={`attempt ${each.attempt} took ${took(each.durationMs)}`}
            />
          </td>
        </tr>
      ))}
    </Table>
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
