import type { z } from "zod";
import type { configurationSchema } from "../../schemas.ts";
import { get, useData } from "../api.tsx";
import { ActionButton, bytes, Ready, Table } from "../parts.tsx";
import { download } from "../run-event.tsx";

type Configuration = z.infer<typeof configurationSchema>;

/** Shows how the runtime was started. */
export function ConfigPage() {
  const loaded = useData<Configuration>("/api/config", []);
  return (
    <>
      <h1>Configuration</h1>
      <p class="quiet">Options and limits of this runtime. Secrets, and the values of variables, are left out.</p>
      <Ready of={loaded}>
        {(config) => (
          <>
            <p class="actions">
              <ActionButton action={downloadSupport}>Download a support bundle</ActionButton>
              <button
                type="button"
                onClick={() => download("watchfire-config.json", `${JSON.stringify(config, null, 2)}\n`)}
              >
                Download the configuration
              </button>
            </p>
            <Disk disk={config.disk} />
            <Rows caption="Versions" head="Program" rows={Object.entries(config.versions)} />
            <Rows caption="Place" head="Part" rows={Object.entries(config.place)} />
            <Rows
              caption="Limits"
              head="Limit"
              rows={Object.entries(config.limits).map(([name, limit]) => [name, limitText(limit)])}
            />
            <Rows
              caption="Flags"
              head="Flag"
              rows={Object.entries(config.flags).map(([name, value]) => [`--${name}`, flagText(value)])}
            />
          </>
        )}
      </Ready>
    </>
  );
}

/** Saves what `watchfire support` writes: no code, no objects, no secrets. */
async function downloadSupport(): Promise<string> {
  const runtime = await get<{ takenAt: string }>("/api/support");
  const name = `watchfire-support-${runtime.takenAt.replace(/[-:]|\.\d+/g, "")}.json`;
  download(name, `${JSON.stringify({ takenAt: runtime.takenAt, runtime }, null, 2)}\n`);
  return `${name} is downloaded: the runtime's state without code, objects and secrets. Read it before you send it`;
}

/** Smaller files of the data folder are left out. */
const leastBytes = 4096;

/** The data folder and its volume. */
function Disk({ disk: { files, size, free } }: { disk: Configuration["disk"] }) {
  const used = files.reduce((sum, file) => sum + file.bytes, 0);
  const volume = size && free !== undefined ? { size, free, full: Math.round(100 * (1 - free / size)) } : undefined;
  return (
    <Rows
      caption="Disk"
      head="Part"
      rows={[
        [
          "volume of the data folder",
          volume ? `${volume.full} % full, ${bytes(volume.free)} of ${bytes(volume.size)} free` : "unknown",
        ],
        ["data folder", bytes(used)],
        ...files.filter((file) => file.bytes >= leastBytes).map((file) => [file.name, bytes(file.bytes)] as const),
      ]}
    />
  );
}

function Rows(props: { caption: string; head: string; rows: readonly (readonly [name: string, value: string])[] }) {
  const { caption, head, rows } = props;
  if (rows.length === 0) return null;
  return (
    <Table caption={caption} heads={[head, "Value"]}>
      {rows.map(([name, value]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="id">{value}</td>
        </tr>
      ))}
    </Table>
  );
}

function limitText({ value, unit }: Configuration["limits"][string]): string {
  if (unit === "bytes") return value === 0 ? "off" : bytes(value);
  if (unit === "seconds" && value >= 2 * 86_400) return `${Math.round(value / 86_400)} days`;
  return unit === "seconds" && value >= 7200 ? `${Math.round(value / 3600)} h` : `${value} ${unit}`;
}

const flagText = (value: unknown): string =>
  value === true ? "on" : value === false ? "off" : Array.isArray(value) ? value.join(", ") : String(value);
