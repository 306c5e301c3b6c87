import { useState } from "preact/hooks";
import type { Redeliveries, RedeliverQuestion } from "../../observe/control-api.ts";
import { post } from "./api.tsx";
import { act, Confirm } from "./parts.tsx";
import { deniedId, type Rights } from "./rights.tsx";

const whys = {
  waits: "have an event that waits already",
  news: "have a newer event under way",
  filtered: "are filtered",
  full: "found no room",
} as const;

/** A button that delivers one object, or all objects, to a function again. */
export function RedeliverButton({ name, rights }: { name: string; rights: Rights }) {
  const [isAsking, setAsking] = useState(false);
  const [namespace, setNamespace] = useState("");
  const [object, setObject] = useState("");
  const [delivered, setDelivered] = useState<number>();
  const isAll = object.trim() === "";
  const run = () => {
    setAsking(false);
    void act(async () => {
      const path = `/api/functions/${encodeURIComponent(name)}/redeliver`;
      const ask = (question: RedeliverQuestion) => post<Redeliveries>(path, question);
      setDelivered(0);
      try {
        let answer = await ask(
          isAll ? { all: true } : { object: { namespace: namespace.trim(), name: object.trim() } },
        );
        while (answer.job !== undefined) {
          setDelivered(answer.queued);
          answer = await ask({ job: answer.job });
        }
        const left = answer.skipped.map(({ why, count }) => `; ${count} ${whys[why]}`);
        return `${answer.queued} ${answer.queued === 1 ? "event is" : "events are"} delivered again${left.join("")}${answer.elsewhere === undefined ? "" : `. Not at all shards: ${answer.elsewhere}`}`;
      } finally {
        setDelivered(undefined);
      }
    });
  };
  return (
    <>
      <button
        type="button"
        disabled={delivered !== undefined || !rights.mayWrite}
        aria-describedby={deniedId}
        onClick={() => setAsking(true)}
      >
        Redeliver
      </button>
      {delivered !== undefined && <span role="status">{delivered} delivered again so far</span>}
      {isAsking && (
        <Confirm
          title={`Redeliver to ${name}?`}
          yes={isAll ? "Redeliver all objects" : "Redeliver the object"}
          onYes={run}
          onNo={() => setAsking(false)}
        >
          <p>
            The handler runs with the object as it is now. Without a name, it runs with every object that its triggers
            select.
          </p>
          <div class="filters">
            <label>
              <span>Namespace</span>
              <input
                value={namespace}
                onInput={(event) => setNamespace(event.currentTarget.value)}
                autocomplete="off"
              />
            </label>
            <label>
              <span>Name</span>
              <input value={object} onInput={(event) => setObject(event.currentTarget.value)} autocomplete="off" />
            </label>
          </div>
        </Confirm>
      )}
    </>
  );
}
