import { useState } from "preact/hooks";
import type { z } from "zod";
import type { FunctionManifest } from "../../manifest/function.ts";
import type { FunctionTime, functionDetailSchema, sourceAnswerSchema } from "../schemas.ts";
import { useData } from "./api.tsx";
import { bytes, Code, number, Ready, Table, took } from "./parts.tsx";

type Detail = z.infer<typeof functionDetailSchema>;
type Shown = Partial<FunctionManifest>;

/** The function's limits, and its present use of them. */
export function Limits({ detail: { function: report, manifest } }: { detail: Detail }) {
  const { resources, delivery, stateBytes, cacheBytes, reads = [] } = (manifest ?? {}) as Shown;
  if (!resources || !delivery) return null;
  const cached = report.reads?.reduce((sum, read) => sum + ((read as { bytes?: number }).bytes ?? 0), 0);
  const rows: readonly (readonly [name: string, limit: string, use: string])[] = [
    ["Memory of its isolate", bytes(resources.memoryBytes), "each run shows it"],
    ["CPU of an event", took(resources.cpuPerEventMs), "each run shows it"],
    ["Duration of an attempt", took(delivery.timeoutMs), "each run shows it"],
    [
      "Running at once",
      String(delivery.concurrency),
      report.inFlight === undefined ? "unknown" : String(report.inFlight),
    ],
    ["Attempts of an event", String(delivery.retry.maxAttempts), `then ${delivery.onFailure}`],
    ["Its own state", bytes(stateBytes ?? 0), "–"],
    ...(reads.length === 0
      ? []
      : [["Objects in memory", bytes(cacheBytes ?? 0), cached === undefined ? "unknown" : bytes(cached)] as const]),
  ];
  return (
    <Table caption="Limits" heads={["Limit", "At most", "At present"]}>
      {rows.map(([name, limit, use]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>{limit}</td>
          <td>{use}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Where the time of the last attempts goes, on average. */
export function TimeSpent({ name }: { name: string }) {
  const { data } = useData<FunctionTime>(`/api/functions/${encodeURIComponent(name)}/time`, ["runs"]);
  if (!data || data.runs === 0) return null;
  const rows: readonly (readonly [name: string, ms: number, note: string])[] = [
    ["Waiting before it", data.waitedMs, "in its queue"],
    ["The whole attempt", data.tookMs, `the slowest took ${took(data.slowestMs)}`],
    ["CPU", data.cpuMs, ""],
    ...data.calls.map((call) => [call.name, call.ofRunMs, `${call.count} calls of ${took(call.meanMs)}`] as const),
  ];
  return (
    <Table
      caption={`Time of the last ${data.runs === 1 ? "attempt" : `${data.runs} attempts`}`}
      heads={["Part", number("Mean"), "Note"]}
    >
      {rows.map(([part, ms, note]) => (
        <tr key={part}>
          <th scope="row">{part}</th>
          <td class="number">{took(ms)}</td>
          <td>{note}</td>
        </tr>
      ))}
    </Table>
  );
}

/** The calls that the function may make. Anything else is refused. */
export function Rights({ manifest }: { manifest: Detail["manifest"] }) {
  const { permissions = [], egress = [] } = (manifest ?? {}) as Shown;
  if (manifest === undefined) return null;
  if (permissions.length + egress.length === 0) {
    return <p class="quiet">Its manifest grants no calls: neither `permissions` nor `egress`.</p>;
  }
  const list = (names: readonly string[] | undefined, other = "all") => (names ? names.join(", ") : other);
  return (
    <Table caption="Rights" heads={["On", "May", "Where"]}>
      {permissions.map(({ apiGroups, resources, verbs, resourceNames, namespaces }) => (
        <tr key={JSON.stringify([apiGroups, resources, verbs, resourceNames, namespaces])}>
          <th scope="row">
            {resources.join(", ")} {apiGroups.some(Boolean) && <span class="quiet">of {apiGroups.join(", ")}</span>}
          </th>
          <td>{verbs.join(", ")}</td>
          <td>
            {list(namespaces, "all namespaces")}
            {resourceNames && `: ${resourceNames.join(", ")}`}
          </td>
        </tr>
      ))}
      {egress.map(({ host, ports, network }) => (
        <tr key={`${host} ${ports}`}>
          <th scope="row">{host}</th>
          <td>requests by ctx.fetch</td>
          <td>
            {ports.length === 1 ? "port" : "ports"} {ports.join(", ")}, {network.toLowerCase()} addresses
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The handler's code as it runs, loaded when it is opened. */
export function SourceCode({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(false);
  const path = isOpen ? `/api/functions/${encodeURIComponent(name)}/source` : undefined;
  const loaded = useData<z.infer<typeof sourceAnswerSchema>>(path, ["functions"]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Code as it runs</summary>
      {isOpen && (
        <Ready of={loaded}>
          {({ file, text }) =>
            text === undefined ? (
              <p class="quiet">The text of {file} is not there: its code is not loaded, or has no source map.</p>
            ) : (
              <Code label={file}>{text}</Code>
            )
          }
        </Ready>
      )}
    </details>
  );
}
