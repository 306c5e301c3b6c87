import type { z } from "zod";
import type { sourcesAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { age, number, Ready, Table, wide, wideNumber } from "../parts.tsx";
import { functionHref } from "../route.tsx";

type Source = z.infer<typeof sourcesAnswerSchema>["sources"][number];

export function SourcesPage() {
  const loaded = useData<z.infer<typeof sourcesAnswerSchema>>("/api/sources", ["sources"], 5_000);
  return (
    <>
      <h1>Sources</h1>
      <p class="quiet">Each is one list and watch at the API server, shared by all functions that read the same.</p>
      <Ready of={loaded}>
        {({ sources }) => (
          <>
            <SourceTable sources={sources} isWhole />
            <Faults sources={sources} />
          </>
        )}
      </Ready>
    </>
  );
}

/** The last error of each source, which may be over. */
function Faults({ sources }: { sources: readonly Source[] }) {
  const faults = sources.flatMap(({ apiVersion, kind, namespace = "", lastError }) =>
    lastError ? [{ name: `${apiVersion} ${kind} ${namespace}`.trim(), ...lastError }] : [],
  );
  if (faults.length === 0) return null;
  return (
    <Table caption="Last errors" heads={["Source", number("When"), "Error"]}>
      {faults.map(({ name, cause, message, ageMs }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="number">{ago(ageMs)}</td>
          <td class="message">
            {cause}: {message}
          </td>
        </tr>
      ))}
    </Table>
  );
}

const ago = (ms: number | undefined): string => (ms === undefined ? "–" : `${age(Math.max(1, ms / 1000))} ago`);

const heads = [
  "Kind",
  wide("Selection"),
  "State",
  wide("Resource version"),
  number("Last byte"),
  wideNumber("Last bookmark"),
  wideNumber("Reconnects"),
  wide("Shared by"),
];

interface SourceTableProps {
  readonly sources: readonly Source[];
  /** Names the functions that share each source, in place of their number. */
  readonly isWhole?: boolean;
}

export function SourceTable({ sources, isWhole = false }: SourceTableProps) {
  if (sources.length === 0) return <p class="quiet">Nothing is watched.</p>;
  return (
    <Table caption="Sources" heads={heads}>
      {sources.map((source) => {
        const { apiVersion, kind, namespace, labelSelector, fieldSelector, state, message } = source;
        const selection = [namespace, labelSelector, fieldSelector].filter(Boolean).join(", ");
        return (
          <tr key={`${apiVersion} ${kind} ${selection}`}>
            <th scope="row">
              {apiVersion} {kind}
            </th>
            <td class="wide">{selection || "all"}</td>
            <td>
              <span
                class={`badge ${state === "watching" ? "good" : state === "listing" || state === "discovering" ? "warn" : "bad"}`}
              >
                {state}
              </span>
              {message !== undefined && <div class="message">{message}</div>}
            </td>
            <td class="wide">{source.resourceVersion ?? "–"}</td>
            <td class="number">{ago(source.lastByteAgeMs)}</td>
            <td class="number wide">{ago(source.lastBookmarkAgeMs)}</td>
            <td class="number wide">{source.reconnects ?? 0}</td>
            <td class="wide">
              {isWhole && source.functions
                ? source.functions.map((name) => (
                    <a key={name} href={functionHref(name)}>
                      {name}{" "}
                    </a>
                  ))
                : (source.subscribers ?? 0)}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
