import type { RunEvent } from "../schemas.ts";
import { post, useData } from "./api.tsx";
import { diffOf } from "./object-diff.ts";
import { ActionButton, Code, Ready, Table, Words } from "./parts.tsx";
import type { Rights } from "./rights.tsx";

/** The objects of an event: of a fixture's event, its run of a key, or one event of its batch. */
interface EventObjects {
  readonly type?: string;
  readonly object?: unknown;
  readonly oldObject?: unknown;
}

/** Rows of a comparison that are shown. */
const mostRows = 200;

/** The run's event: the difference to the state before, the object, and a button that keeps both as a fixture. */
export function ReceivedEvent({ rights, ...run }: { id: string; name: string; rights: Rights }) {
  if (rights.mayWrite) return <Received {...run} rights={rights} />;
  return (
    <section aria-labelledby="received">
      <h2 id="received">Received</h2>
      <p class="quiet">The objects of a run are shown to those who may change its function.</p>
    </section>
  );
}

function Received({ id, name, rights }: { id: string; name: string; rights: Rights }) {
  const path = `/api/runs/${encodeURIComponent(id)}/event?function=${encodeURIComponent(name)}`;
  const loaded = useData<RunEvent>(path, []);
  return (
    <section aria-labelledby="received">
      <h2 id="received">Received</h2>
      <Ready of={loaded}>
        {(event) =>
          event.fixture === undefined ? (
            <p class="quiet">
              <Words>
                {`Its objects are no longer in memory, which has those of the last runs. \`watchfire record ${name}\` records the events that follow.`}
              </Words>
            </p>
          ) : (
            <>
              <p class="actions">
                <SaveButton event={event} id={id} name={name} rights={rights} />
                <span class="quiet">
                  {event.savesTo === undefined ? "Downloads" : `Writes into ${event.savesTo}`} what it received, for{" "}
                  <code>watchfire test</code>. Secrets are removed.
                </span>
              </p>
              {objectsOf(event.fixture).map((each, index) => (
                <Objects key={String(index)} of={each} />
              ))}
            </>
          )
        }
      </Ready>
    </section>
  );
}

function objectsOf(fixture: NonNullable<RunEvent["fixture"]>): readonly EventObjects[] {
  const { event, run, events } = fixture as {
    event?: EventObjects;
    run?: EventObjects;
    events?: readonly EventObjects[];
  };
  return events ?? [event ?? run ?? {}];
}

function SaveButton({ event, id, name, rights }: { event: RunEvent; id: string; name: string; rights: Rights }) {
  const save = async () => {
    if (event.savesTo === undefined) {
      download(event.file ?? "event.json", `${JSON.stringify(event.fixture, null, 2)}\n`);
      return `${event.file} is downloaded`;
    }
    const { file } = await post<{ file: string }>(`/api/runs/${encodeURIComponent(id)}/fixture`, { function: name });
    return `${file} is written`;
  };
  // A download changes nothing.
  const isDenied = event.savesTo !== undefined && !rights.mayWrite;
  return (
    <ActionButton action={save} disabled={isDenied}>
      Save as fixture
    </ActionButton>
  );
}

/** Saves a text as a file of the reader's. */
export function download(file: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = file;
  link.dataset.raw = "";
  link.click();
  URL.revokeObjectURL(url);
}

function Objects({ of: { type, object, oldObject } }: { of: EventObjects }) {
  if (object === undefined) return <p class="quiet">It received no object.</p>;
  return (
    <>
      {oldObject === undefined ? (
        type === "Modified" && (
          <p class="quiet">
            <Words>There is no earlier state: it is kept only for a handler that uses `oldObject`.</Words>
          </p>
        )
      ) : (
        <Changes changes={diffOf(oldObject, object)} />
      )}
      <details>
        <summary>The object</summary>
        <Code label="The object">{JSON.stringify(object, null, 2)}</Code>
      </details>
    </>
  );
}

function Changes({ changes }: { changes: ReturnType<typeof diffOf> }) {
  if (changes.length === 0) return <p class="quiet">The object is as it was before.</p>;
  return (
    <>
      <Table caption="Changes from oldObject to object" heads={["Field", "Before", "After"]}>
        {changes.slice(0, mostRows).map((change) => (
          <tr key={change.path}>
            <th scope="row" class="id">
              {change.path}
            </th>
            <td>{"before" in change ? <del>{shown(change.before)}</del> : <span class="quiet">absent</span>}</td>
            <td>{"after" in change ? <ins>{shown(change.after)}</ins> : <span class="quiet">absent</span>}</td>
          </tr>
        ))}
      </Table>
      {changes.length > mostRows && <p class="quiet">{changes.length - mostRows} further fields differ.</p>}
    </>
  );
}

const shown = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "").replace(/\n\s*/g, " ");
