import type { z } from "zod";
import type { sourcesAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { number, Ready, Table, wide, wideNumber } from "../parts.tsx";

type Source = z.infer<typeof sourcesAnswerSchema>["sources"][number];

export function SourcesPage() {
  const loaded = useData<z.infer<typeof sourcesAnswerSchema>>("/api/sources", ["sources"]);
  return (
    <>
      <h1>Sources</h1>
      <p class="quiet">Each is one list and watch at the API server, shared by all functions that read the same.</p>
      <Ready of={loaded}>{({ sources }) => <SourceTable sources={sources} />}</Ready>
    </>
  );
}

const heads = [
  "Kind",
  wide("Selection"),
  "State",
  wide("Resource version"),
  number("Last byte"),
  wideNumber("Reconnects"),
  wideNumber("Shared by"),
];

export function SourceTable({ sources }: { sources: readonly Source[] }) {
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
            <td class="number">
              {source.lastByteAgeMs === undefined ? "–" : `${Math.round(source.lastByteAgeMs / 1000)} s ago`}
            </td>
            <td class="number wide">{source.reconnects ?? 0}</td>
            <td class="number wide">{source.subscribers ?? 0}</td>
          </tr>
        );
      })}
    </Table>
  );
}
