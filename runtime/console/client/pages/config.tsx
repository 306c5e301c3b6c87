import type { z } from "zod";
import type { configurationSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { bytes, Ready, Table } from "../parts.tsx";
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
              <button
                type="button"
                onClick={() => download("watchfire-config.json", `${JSON.stringify(config, null, 2)}\n`)}
              >
                Download
              </button>
            </p>
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
