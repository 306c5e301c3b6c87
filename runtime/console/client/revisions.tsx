import type { z } from "zod";
import type { changesAnswerSchema, RevisionsAnswer } from "../schemas.ts";
import { useData } from "./api.tsx";
import { Ready, Table, When, wide } from "./parts.tsx";
import { functionHref, setQuery, url } from "./route.tsx";

/** Shown characters of a commit. */
const shortCommit = 10;

const changeWords = {
  added: "adds it",
  changed: "changes it",
  removed: "removes it",
  unchanged: "no change of it",
  absent: "is without it",
  unknown: "not on record",
} as const;

/** The deployments of a function's set. */
export function Revisions({ name }: { name: string }) {
  const loaded = useData<RevisionsAnswer>(`/api/functions/${encodeURIComponent(name)}/revisions`, ["functions"]);
  return (
    <section aria-labelledby="revisions">
      <h2 id="revisions">Revisions</h2>
      <Ready of={loaded}>
        {({ set, current, revisions }) =>
          set === undefined ? (
            <p class="quiet">Its code is read from a folder, not from a deployment, so it has no revisions.</p>
          ) : revisions.length === 0 ? (
            <p class="quiet">The set {set} has no revision on record.</p>
          ) : (
            <Table
              caption={`Revisions of the set ${set}`}
              heads={["Revision", "Deployed", "This function", wide("Commit"), wide("Message")]}
            >
              {revisions.map((each) => (
                <tr key={each.number}>
                  <th scope="row">
                    {each.number} {each.number === current && <span class="badge good">current</span>}
                  </th>
                  <td>
                    <When at={each.at ?? undefined} /> by {each.by}
                  </td>
                  <td>{changeWords[each.change]}</td>
                  <td class="wide">
                    {each.commit?.slice(0, shortCommit)} {each.dirty && "(dirty)"}
                  </td>
                  <td class="wide cut">{each.message.split("\n", 1)[0]}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </Ready>
    </section>
  );
}

export type Change = z.infer<typeof changesAnswerSchema>["changes"][number];

/** The change that paused a function, if it is on record. Without a name, nothing is asked. */
export function usePause(name: string | undefined): Change | undefined {
  const path = name === undefined ? undefined : `/api/changes?function=${encodeURIComponent(name)}`;
  const { data } = useData<z.infer<typeof changesAnswerSchema>>(path, ["functions"]);
  return data?.changes.find(({ verb, result }) => verb === "pause" && result === "done");
}

/** The changes that people asked for: of one function, or of all. `limit`: the rows that are shown until all are asked for. */
export function Changes({ name, limit = 20 }: { name?: string; limit?: number }) {
  const query = name === undefined ? "" : `?function=${encodeURIComponent(name)}`;
  const { data } = useData<z.infer<typeof changesAnswerSchema>>(`/api/changes${query}`, ["functions", "dead-letters"]);
  if (!data || data.changes.length === 0) return null;
  const isWhole = url.value.searchParams.get("changes") === "all";
  const shown = isWhole ? data.changes : data.changes.slice(0, limit);
  return (
    <>
      <Table
        caption={data.history ? "Who changed what" : "Who changed what since the start"}
        heads={["When", "Who", "What", wide("Why"), wide("Result")]}
      >
        {shown.map(({ at, who, verb, functions, set, revision, reason, result, from }) => (
          <tr key={`${at} ${verb} ${functions.join()}`}>
            <td>
              <When at={at} />
            </td>
            <td>{who}</td>
            <td>
              {verb}{" "}
              {functions.map((each) => (
                <a key={each} href={functionHref(each)}>
                  {each}{" "}
                </a>
              ))}
              {set !== undefined && `set ${set}${revision === undefined ? "" : `, revision ${revision}`}`}
            </td>
            <td class="wide">
              {[reason, verb === "deploy" || verb === "rollback" ? from : undefined].filter(Boolean).join("; ")}
            </td>
            <td class="wide">{result}</td>
          </tr>
        ))}
      </Table>
      {data.changes.length > limit && (
        <p class="actions">
          <button type="button" onClick={() => setQuery({ changes: isWhole ? "" : "all" })}>
            {isWhole ? `Show the last ${limit} changes` : `Show all ${data.changes.length} changes`}
          </button>
        </p>
      )}
    </>
  );
}
