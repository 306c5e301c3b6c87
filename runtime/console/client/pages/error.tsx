import type { ErrorDetail } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { Ready, Table, When, wide } from "../parts.tsx";
import { Plot } from "../plot.tsx";
import { ReplayAll } from "../replay-all.tsx";
import { Denied, useRights } from "../rights.tsx";
import { functionHref, runHref } from "../route.tsx";
import { Frame, GroupFacts } from "./errors.tsx";

/** One group of errors. */
export function ErrorPage({ fingerprint }: { fingerprint: string }) {
  const loaded = useData<ErrorDetail>(`/api/errors/${encodeURIComponent(fingerprint)}`, ["runs", "dead-letters"]);
  const rights = useRights();
  const { code, message } = loaded.data?.group ?? {};
  return (
    <>
      <p>
        <a href="/errors">All errors</a>
      </p>
      <h1>{code === undefined ? "Error" : `${code}: ${message?.split("\n", 1)[0]}`}</h1>
      <Ready of={loaded}>
        {({ group, runs, plot, more }) => (
          <>
            <GroupFacts group={group} />
            {more && (
              <p class="notice warn">There are more failures than were looked at: the numbers are of the last ones.</p>
            )}
            <Frame of={group} label={`The line of ${group.code}`} />
            <p class="actions">
              <ReplayAll ids={group.deadLetters} functions={group.functions} rights={rights} />
              <Denied of={rights} />
              {group.deadLetters.length === 0 && <span class="quiet">It has no dead letter that can be replayed.</span>}
            </p>
            <Plot
              title="Occurrences"
              unit="in one bar"
              isCount
              from={Date.parse(plot.from)}
              stepMs={plot.stepMs}
              lines={[{ name: "failures", look: "bad", values: plot.counts }]}
            />
            <Table caption="Runs" heads={["Failed", wide("Function"), "Object", "Message", "Dead letter"]}>
              {runs.map((run) => (
                <tr key={`${run.function} ${run.id} ${run.at}`}>
                  <td>
                    <a href={runHref(run.function, run.id)}>
                      <When at={run.at} />
                    </a>
                  </td>
                  <td class="wide">
                    <a href={functionHref(run.function)}>{run.function}</a>
                  </td>
                  <td class="object">{run.object}</td>
                  <td class="cut">{run.message.split("\n", 1)[0]}</td>
                  <td>
                    {run.deadLetter === undefined ? (
                      "–"
                    ) : (
                      <a href={`/dead-letters?function=${encodeURIComponent(run.function)}&show=${run.deadLetter}`}>
                        {run.deadLetter}
                      </a>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            {group.count > runs.length && <p class="quiet">{group.count - runs.length} earlier ones are not listed.</p>}
          </>
        )}
      </Ready>
    </>
  );
}
