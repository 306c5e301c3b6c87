import { useState } from "preact/hooks";
import type { z } from "zod";
import type { ErrorGroup, errorsAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { act, Code, Confirm, Ready, When } from "../parts.tsx";
import { Denied, deniedId, type Rights, useRights } from "../rights.tsx";
import { functionHref, runHref } from "../route.tsx";
import { replay } from "./dead-letters.tsx";

export function ErrorsPage() {
  const loaded = useData<z.infer<typeof errorsAnswerSchema>>("/api/errors", ["runs", "dead-letters"]);
  const rights = useRights();
  return (
    <>
      <h1>Errors</h1>
      <p class="quiet">Failed attempts and dead letters, grouped by code, place and message without variables.</p>
      <Denied of={rights} />
      <Ready of={loaded}>
        {({ groups, more }) => (
          <>
            {more && <p class="notice warn">There are more dead letters than were looked at.</p>}
            {groups.length === 0 ? <p class="notice good">No errors: nothing has failed lately.</p> : null}
            {groups.map((group) => (
              <Group key={group.fingerprint} group={group} rights={rights} />
            ))}
          </>
        )}
      </Ready>
    </>
  );
}

function Group({ group, rights }: { group: ErrorGroup; rights: Rights }) {
  const { fingerprint, code, message, place, frame, functions, count, firstSeen, lastSeen, deadLetters, lastRun } =
    group;
  const [isAsking, setAsking] = useState(false);
  const all = deadLetters.length === 1 ? "1 dead letter" : `${deadLetters.length} dead letters`;
  const replayAll = () => {
    setAsking(false);
    void act(() => replay(deadLetters));
  };
  return (
    <article class="card" aria-labelledby={fingerprint}>
      <h2 id={fingerprint}>
        {code}: {message.split("\n", 1)[0]}
      </h2>
      <dl class="facts">
        <dt>Seen</dt>
        <dd>
          {count === 1 ? "once" : `${count} times`}, last at <When at={lastSeen} />
          {firstSeen !== lastSeen && (
            <>
              , first at <When at={firstSeen} />
            </>
          )}
        </dd>
        <dt>{functions.length === 1 ? "Function" : "Functions"}</dt>
        <dd>
          {functions.map((name) => (
            <a key={name} href={functionHref(name)}>
              {name}{" "}
            </a>
          ))}
        </dd>
        {place !== undefined && (
          <>
            <dt>Place</dt>
            <dd class="id">{place}</dd>
          </>
        )}
      </dl>
      {frame !== undefined && <Code label={`The line of ${code}`}>{frame}</Code>}
      <p class="actions">
        <a class="button" href={runHref(lastRun.function, lastRun.id)} aria-label={`Last run with ${code}`}>
          Last run
        </a>
        {deadLetters.length > 0 && (
          <button
            type="button"
            class="primary"
            disabled={!rights.mayWrite}
            aria-describedby={deniedId}
            onClick={() => setAsking(true)}
          >
            Replay all {all}
          </button>
        )}
      </p>
      {isAsking && (
        <Confirm title={`Replay ${all}?`} yes={`Replay ${all}`} onYes={replayAll} onNo={() => setAsking(false)}>
          <p>
            The handler of {functions.join(", ")} runs again with each event as it was. What fails again becomes a dead
            letter again.
          </p>
        </Confirm>
      )}
    </article>
  );
}
