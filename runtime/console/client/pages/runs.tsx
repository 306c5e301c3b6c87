import type { z } from "zod";
import type { RunRow } from "../../../observe/control-api.ts";
import type { functionsAnswerSchema, runSearchSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { Filter, Outcome, Ready, Table, took, tookOf, When, wide, wideNumber } from "../parts.tsx";
import { functionHref, runHref, setQuery, url } from "../route.tsx";

const outcomes = [
  ["", "all"],
  ["ok", "ok"],
  ["failed", "failed"],
  ["permanent", "failed, no retry"],
  ["interrupted", "interrupted"],
] as const;

const loggeds = [
  ["", "anything"],
  ["warning", "a warning or error"],
] as const;

const sinces = [
  ["", "any time"],
  ["5", "5 minutes"],
  ["60", "an hour"],
  ["1440", "a day"],
  ["10080", "a week"],
] as const;

/** Rows on one page. */
const pageSize = 100;

/** The next millisecond: several runs may have ended in one, and a page then begins with those that the last one ended with. */
const after = (at: string): string => new Date(Date.parse(at) + 1).toISOString();

export function RunsPage() {
  const { searchParams } = url.value;
  const of = (name: string) => searchParams.get(name) ?? "";
  const query = new URLSearchParams({ limit: String(pageSize) });
  for (const name of ["function", "outcome", "object", "trigger", "log", "logged", "before"])
    if (of(name).trim() !== "") query.set(name, of(name).trim());
  const minutes = Number(of("minutes"));
  // To the minute, so that the same question stays the same.
  if (minutes > 0) query.set("since", new Date(Math.floor(Date.now() / 60_000 - minutes) * 60_000).toISOString());
  const loaded = useData<z.infer<typeof runSearchSchema>>(`/api/runs?${query}`, ["runs"]);
  const functions = useData<z.infer<typeof functionsAnswerSchema>>("/api/functions", ["functions"]);
  const names = functions.data?.functions.map(({ name }) => name) ?? [];
  const named = of("function");
  const known = named === "" || names.includes(named) ? names : [named, ...names];
  return (
    <>
      <h1>Runs</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Filter
          label="Function"
          name="function"
          value={named}
          options={[["", "all"], ...known.map((name) => [name, name] as const)]}
          onChange={setQuery}
        />
        <Filter label="Outcome" name="outcome" value={of("outcome")} options={outcomes} onChange={setQuery} />
        <Filter
          label="Object contains"
          name="object"
          value={of("object")}
          onChange={setQuery}
          hint="kind namespace/name"
        />
        <Filter label="Trigger is" name="trigger" value={of("trigger")} onChange={setQuery} hint="whole name" />
        <Filter label="Log contains" name="log" value={of("log")} onChange={setQuery} />
        <Filter label="Logged" name="logged" value={of("logged")} options={loggeds} onChange={setQuery} />
        <Filter label="Ended within" name="minutes" value={of("minutes")} options={sinces} onChange={setQuery} />
      </form>
      <Ready of={loaded}>
        {({ runs, history, elsewhere }) => (
          <>
            {of("before") !== "" && (
              <p class="notice">
                These ended before <When at={of("before")} />.{" "}
                <button type="button" onClick={() => setQuery({ before: "" })}>
                  Newest
                </button>
              </p>
            )}
            {elsewhere !== undefined && <p class="notice warn">These are the runs here alone: {elsewhere}.</p>}
            {runs.length === 0 ? (
              <p class="quiet">
                No attempt matches.{" "}
                {!history &&
                  "Without a history, the runtime has the last 200 of each function, since its start, and no log lines to search."}
              </p>
            ) : (
              <RunTable runs={runs} />
            )}
            {runs.length >= pageSize && history && (
              <p class="actions">
                <button type="button" onClick={() => setQuery({ before: after(runs.at(-1)?.at ?? "") })}>
                  Older
                </button>
              </p>
            )}
          </>
        )}
      </Ready>
    </>
  );
}

const heads = [
  "Ended",
  "Outcome",
  "Function",
  wide("Event"),
  "Object",
  wideNumber("Waited"),
  wideNumber("Took"),
  wideNumber("Calls"),
  wide("Error"),
];

/** `isOfOne`: the runs of one function, which is not named. */
export function RunTable({ runs, isOfOne = false }: { runs: readonly RunRow[]; isOfOne?: boolean }) {
  return (
    <Table caption="Runs" heads={isOfOne ? heads.filter((head) => head !== "Function") : heads}>
      {runs.map((run) => (
        <tr key={`${run.function} ${run.id} ${run.attempt} ${run.at}`}>
          <td>
            <a href={runHref(run.function, run.id)}>
              <When at={run.at} />
            </a>
          </td>
          <td>
            <Outcome of={run.outcome} />
            {run.attempt > 1 && <span class="quiet whole"> attempt {run.attempt}</span>}
            {run.warned && run.outcome === "ok" && <span class="badge warn">warning</span>}
          </td>
          {!isOfOne && (
            <td>
              <a href={functionHref(run.function)}>{run.function}</a>
            </td>
          )}
          <td class="wide">{run.type}</td>
          <td class="object">
            {run.kind} {run.object}
          </td>
          <td class="number wide">{run.waitedMs === undefined ? "–" : took(run.waitedMs)}</td>
          <td class="number wide">{tookOf(run)}</td>
          <td class="number wide">{run.calls ?? 0}</td>
          <td class="wide cut">{run.error?.split("\n", 1)[0]}</td>
        </tr>
      ))}
    </Table>
  );
}
