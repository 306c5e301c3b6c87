import { useState } from "preact/hooks";
import type { Redeliveries, RedeliverQuestion } from "../../observe/control-api.ts";
import type { AttemptRow } from "../schemas.ts";
import { post, Refusal } from "./api.tsx";
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
  const [isAll, setAll] = useState(false);
  const run = (reason: string) => {
    setAsking(false);
    void act(async () => {
      const path = `/api/functions/${encodeURIComponent(name)}/redeliver`;
      const ask = (question: RedeliverQuestion) => post<Redeliveries>(path, question, reason);
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
          isIncomplete={!isAll && object.trim() === ""}
          onYes={run}
          onNo={() => setAsking(false)}
        >
          <p>The handler runs with the object as it is now, or with every object that its triggers select.</p>
          <p>
            <label>
              <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} /> All
              objects
            </label>
          </p>
          <div class="filters">
            <label>
              <span>Namespace</span>
              <input
                value={namespace}
                disabled={isAll}
                onInput={(event) => setNamespace(event.currentTarget.value)}
                autocomplete="off"
              />
            </label>
            <label>
              <span>Name</span>
              <input
                value={object}
                disabled={isAll}
                onInput={(event) => setObject(event.currentTarget.value)}
                autocomplete="off"
              />
            </label>
          </div>
        </Confirm>
      )}
    </>
  );
}

/**
 * A button that repeats a run. If its object has changed since, the run cannot be repeated, and the button asks about the present state.
 * @param of one of its attempts, if one is on record
 * @param letter the id of its dead letter
 */
export function RedeliverRun(props: {
  id: string;
  name: string;
  of: AttemptRow | undefined;
  letter: string | undefined;
  rights: Rights;
}) {
  const { id, name, of, letter, rights } = props;
  const [asking, setAsking] = useState<"run" | "object">();
  const deliver = (question: RedeliverQuestion, reason: string) => {
    setAsking(undefined);
    void act(async () => {
      const path = `/api/functions/${encodeURIComponent(name)}/redeliver`;
      try {
        const { queued } = await post<Redeliveries>(path, question, reason);
        return queued === 0 ? "nothing was delivered again" : "the event is delivered again";
      } catch (error) {
        const isOld = error instanceof Refusal && error.code === "WF_RUNTIME_NOT_REDELIVERED";
        if (isOld && "run" in question && of && of.type !== "Deleted") setAsking("object");
        throw error;
      }
    });
  };
  const [object = "", namespace = ""] = (of?.object ?? "").split("/").reverse();
  return (
    <>
      <button type="button" disabled={!rights.mayWrite} aria-describedby={deniedId} onClick={() => setAsking("run")}>
        Redeliver
      </button>
      {asking === "run" && (
        <Confirm
          title="Redeliver this event?"
          yes="Redeliver the event"
          onYes={(reason) => deliver({ run: id }, reason)}
          onNo={() => setAsking(undefined)}
        >
          <p>
            {letter === undefined
              ? `The handler of ${name} runs again for this event, if its object is still in the state of this run.`
              : `The handler of ${name} runs again with its dead letter ${letter}, which is taken off the list.`}
          </p>
        </Confirm>
      )}
      {asking === "object" && (
        <Confirm
          title="Redeliver the present state?"
          yes="Redeliver the present state"
          onYes={(reason) => deliver({ object: { namespace, name: object } }, reason)}
          onNo={() => setAsking(undefined)}
        >
          <p>
            The object has changed since this run, and an old state is not delivered again. The handler of {name} can
            run with {of?.kind} {of?.object} as it is now.
          </p>
        </Confirm>
      )}
    </>
  );
}
