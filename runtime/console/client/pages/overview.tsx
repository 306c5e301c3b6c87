import type { z } from "zod";
import type { FunctionReport } from "../../../control/function-status/function-report.ts";
import type { Attention, FunctionRow, overviewSchema, ReplicaRow } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { age, number, Ready, Said, Table, took, total, When, Words, wide, wideNumber } from "../parts.tsx";
import { Sparkline, valueText } from "../plot.tsx";
import { Changes } from "../revisions.tsx";
import { useIsDev } from "../rights.tsx";
import { functionHref } from "../route.tsx";
import { type Series, SeriesPlots, useSeries } from "../series.tsx";
import { TypeFaults } from "./apply.tsx";
import { SourceTable } from "./sources.tsx";

type Overview = z.infer<typeof overviewSchema>;

/** The width of the plots. */
const plotMinutes = 15;

export function OverviewPage() {
  const loaded = useData<Overview>("/api/overview", ["functions", "runs", "sources", "dead-letters"]);
  const series = useSeries(plotMinutes);
  const isDev = useIsDev();
  return (
    <>
      <h1>Overview</h1>
      <Ready of={loaded}>
        {({ attention, functions, sources, role, version, replicas, elsewhere, holder }) => (
          <>
            <Needs attention={attention} role={role} holder={holder} count={functions.length} />
            {isDev && <TypeFaults />}
            {replicas && <Replicas replicas={replicas} elsewhere={elsewhere} />}
            {functions.length === 0 ? (
              <p>
                <Words>
                  No functions yet: add a folder with function.yaml and handler.ts, as `watchfire new NAME` does.
                </Words>
              </p>
            ) : (
              <FunctionTable functions={functions} series={series.data} />
            )}
            {series.data && functions.length > 0 && <SeriesPlots of={series.data} minutes={plotMinutes} />}
            <Changes limit={10} />
            <SourceTable sources={sources} />
            <p class="quiet">Watchfire {version}</p>
          </>
        )}
      </Ready>
    </>
  );
}

interface NeedsProps {
  readonly attention: readonly Attention[];
  readonly role: string;
  readonly holder: string | undefined;
  readonly count: number;
}

function Needs({ attention, role, holder, count }: NeedsProps) {
  if (role === "standby") {
    return (
      <p class="notice warn">
        This replica is a standby: {holder ?? "another one"} runs the functions, and has their runs.
      </p>
    );
  }
  if (attention.length === 0) {
    return count === 0 ? null : <p class="notice good">All is well: nothing needs your attention.</p>;
  }
  return (
    <section aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      <ul class="attention">
        {attention.map(({ severity, title, text, todo, href }) => (
          <li key={title} class={severity}>
            <h3>{href === undefined ? title : <a href={href}>{title}</a>}</h3>
            <p class="message">
              <Said>{text}</Said>
            </p>
            <p>
              <strong>What to do:</strong> <Words>{todo}</Words>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The replicas of a fleet, and those whose functions are not on the page. */
function Replicas({ replicas, elsewhere }: { replicas: readonly ReplicaRow[]; elsewhere: string | undefined }) {
  return (
    <>
      {elsewhere !== undefined && <p class="notice warn">A part of the fleet is not on these pages: {elsewhere}.</p>}
      <Table caption="Replicas" heads={["Replica", number("Slots"), wide("Functions"), "Answer"]}>
        {replicas.map(({ name, slots, functions, answers }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number">{slots.length}</td>
            <td class="wide">{functions.join(", ")}</td>
            <td>
              <span class={`badge ${answers ? "good" : "warn"}`}>{answers ? "answers" : "did not answer"}</span>
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

const heads = [
  "Function",
  "State",
  number("Waiting"),
  wideNumber("Oldest"),
  wideNumber("Running"),
  wideNumber("Took"),
  wide("Events/s"),
  wide("Errors/s"),
  wideNumber("Failed"),
  number("Dead letters"),
  wide("Last event"),
];

function FunctionTable({ functions, series }: { functions: readonly FunctionRow[]; series: Series | undefined }) {
  const sampled = new Map(series?.functions.map((each) => [each.name, each]));
  const stepMs = series?.stepMs ?? 1;
  return (
    <Table caption="Functions" heads={heads}>
      {functions.map((each) => (
        <tr key={each.name}>
          <th scope="row" class="name">
            <a href={functionHref(each.name)}>{each.name}</a>
          </th>
          <td>
            <FunctionState of={each} />
          </td>
          <td class="number">{total(each.queued, each.spilled)}</td>
          <td class="number wide">{each.lagSeconds === undefined ? "unknown" : age(each.lagSeconds)}</td>
          <td class="number wide">{total(each.inFlight)}</td>
          <td class="number wide">{each.meanMs === undefined ? "–" : took(each.meanMs)}</td>
          <td class="wide">
            <Rate
              of={each.name}
              what="events"
              look="good"
              counts={sampled.get(each.name)?.events ?? []}
              stepMs={stepMs}
            />
          </td>
          <td class="wide">
            <Rate
              of={each.name}
              what="errors"
              look="bad"
              counts={sampled.get(each.name)?.errors ?? []}
              stepMs={stepMs}
            />
          </td>
          <td class="number wide">{total(each.failures)}</td>
          <td class="number">
            {!each.deadLetters ? (
              total(each.deadLetters)
            ) : (
              <a
                href={`/dead-letters?function=${encodeURIComponent(each.name)}`}
                aria-label={`${each.deadLetters} dead letters of ${each.name}`}
              >
                {each.deadLetters}
              </a>
            )}
          </td>
          <td class="wide">
            <When at={each.lastEvent} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

interface RateProps {
  readonly of: string;
  readonly what: "events" | "errors";
  readonly look: "good" | "bad";
  /** In each step. */
  readonly counts: readonly number[];
  readonly stepMs: number;
}

/** The last rate, and the shape of those before. */
function Rate({ of, what, look, counts, stepMs }: RateProps) {
  const rates = counts.map((count) => (count * 1000) / stepMs);
  const [now, most] = [rates.at(-1) ?? 0, Math.max(...rates, 0)];
  const label = `${what} of ${of}: ${valueText(now)} a second, at most ${valueText(most)}`;
  return (
    <span class="rate">
      <Sparkline label={label} look={look} values={rates} /> {most > 0 && valueText(now)}
    </span>
  );
}

export function FunctionState({ of: { ready, reason, paused } }: { of: FunctionReport }) {
  if (paused) return <span class="badge warn">paused</span>;
  if (reason === "Suspended") return <span class="badge">suspended</span>;
  if (!ready) return <span class="badge bad">{reason ?? "not ready"}</span>;
  return reason === undefined ? <span class="badge good">running</span> : <span class="badge warn">{reason}</span>;
}
