import type { z } from "zod";
import type { sourcesAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { age, bytes, number, Ready, sentence, Table, took, wide, wideNumber } from "../parts.tsx";
import { functionHref } from "../route.tsx";

type Source = z.infer<typeof sourcesAnswerSchema>["sources"][number];

export function SourcesPage() {
  const loaded = useData<z.infer<typeof sourcesAnswerSchema>>("/api/sources", ["sources"], 5_000);
  return (
    <>
      <h1>Sources</h1>
      <p class="quiet">Each is one list and watch at the API server, shared by all functions that read the same.</p>
      <Ready of={loaded}>
        {({ sources, elsewhere }) => (
          <>
            {elsewhere !== undefined && <p class="notice warn">Some sources are not here: {elsewhere}.</p>}
            <SourceTable sources={sources} isWhole />
            <Lists sources={sources} />
            <Faults sources={sources} />
          </>
        )}
      </Ready>
    </>
  );
}

/** The last error of each source, which may be over. */
function Faults({ sources }: { sources: readonly Source[] }) {
  const faults = sources.flatMap((source) => (source.lastError ? [{ name: nameOf(source), ...source.lastError }] : []));
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

const selectionOf = ({ namespace, labelSelector, fieldSelector }: Source): string =>
  [namespace, labelSelector, fieldSelector].filter(Boolean).join(", ");

const nameOf = (source: Source): string =>
  [`${source.apiVersion} ${source.kind}`, selectionOf(source), source.replica].filter(Boolean).join(" ");

const ago = (ms: number | undefined): string => (ms === undefined ? "–" : `${age(Math.max(1, ms / 1000))} ago`);

const heads = (isWhole: boolean) => [
  "Kind",
  wide("Selection"),
  "State",
  ...(isWhole ? [wide("Resource version")] : []),
  number("Last event"),
  ...(isWhole ? [wideNumber("Bookmark"), wideNumber("Bytes/s")] : []),
  wideNumber("Reconnects"),
  wide("Shared by"),
];

/** The last list of each source. A source that resumed at its position has read no list. */
function Lists({ sources }: { sources: readonly Source[] }) {
  if (sources.every(({ lastList }) => lastList === undefined)) return null;
  return (
    <Table caption="Last lists" heads={["Source", number("When"), wideNumber("Objects"), wideNumber("Took"), "Why"]}>
      {sources.map((source) => {
        const { lastList } = source;
        if (!lastList) return null;
        const name = nameOf(source);
        return (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number">{ago(lastList.ageMs)}</td>
            <td class="number wide">{lastList.items}</td>
            <td class="number wide">{took(lastList.tookMs)}</td>
            <td class="text">{sentence(lastList.why)}</td>
          </tr>
        );
      })}
    </Table>
  );
}

interface SourceTableProps {
  readonly sources: readonly Source[];
  /** Names the functions that share each source, in place of their number. */
  readonly isWhole?: boolean;
}

export function SourceTable({ sources, isWhole = false }: SourceTableProps) {
  if (sources.length === 0) return <p class="quiet">Nothing is watched.</p>;
  return (
    <Table caption="Sources" heads={heads(isWhole)}>
      {sources.map((source) => {
        const { apiVersion, kind, state, message, bytesPerSecond: rate } = source;
        const selection = selectionOf(source);
        return (
          <tr key={nameOf(source)}>
            <th scope="row">
              {apiVersion} {kind} {source.replica !== undefined && <div class="quiet">{source.replica}</div>}
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
            {isWhole && <td class="wide">{source.resourceVersion ?? "–"}</td>}
            <td class="number">{ago(source.lastEventAgeMs)}</td>
            {isWhole && (
              <>
                <td class="number wide">{ago(source.lastBookmarkAgeMs)}</td>
                <td class="number wide">{rate === undefined ? "–" : bytes(Math.round(rate))}</td>
              </>
            )}
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
