import type { z } from "zod";
import type { ErrorGroup, errorsAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { Code, Ready, When } from "../parts.tsx";
import { ReplayAll } from "../replay-all.tsx";
import { Denied, type Rights, useRights } from "../rights.tsx";
import { functionHref, runHref } from "../route.tsx";

export function ErrorsPage() {
  const loaded = useData<z.infer<typeof errorsAnswerSchema>>("/api/errors", ["runs", "dead-letters"]);
  const rights = useRights();
  return (
    <>
      <h1>Errors</h1>
      <p class="quiet">Failed attempts and dead letters, grouped by code, place and message without variables.</p>
      <Denied of={rights} />
      <Ready of={loaded}>
        {({ groups, more, elsewhere }) => (
          <>
            {more && (
              <p class="notice warn">There are more failures than were looked at: the numbers are of the last ones.</p>
            )}
            {elsewhere !== undefined && <p class="notice warn">These are the errors here alone: {elsewhere}.</p>}
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
  const { fingerprint, code, message, functions, deadLetters, lastRun } = group;
  return (
    <article class="card" aria-labelledby={fingerprint}>
      <h2 id={fingerprint}>
        <a href={`/errors/${fingerprint}`}>
          {code}: {message.split("\n", 1)[0]}
        </a>
      </h2>
      <GroupFacts group={group} />
      <Frame of={group} label={`The line of ${code}`} />
      <p class="actions">
        <a class="button" href={runHref(lastRun.function, lastRun.id)} aria-label={`Last run with ${code}`}>
          Last run
        </a>
        <ReplayAll ids={deadLetters} functions={functions} rights={rights} />
      </p>
    </article>
  );
}

/** The lines around the place of an error, and that they are not those of the present code. */
export function Frame({ of, label }: { of: Pick<ErrorGroup, "frame" | "codeChanged">; label: string }) {
  if (of.frame === undefined) return null;
  return (
    <>
      {of.codeChanged && (
        <p class="notice warn">The code has changed since. These lines are as they were when it failed.</p>
      )}
      <Code label={label}>{of.frame}</Code>
    </>
  );
}

/** How often, when and where a group of errors was seen. */
export function GroupFacts({
  group: { count, firstSeen, lastSeen, functions, place, objects },
}: {
  group: ErrorGroup;
}) {
  return (
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
      {objects.count > 0 && (
        <>
          <dt>{objects.count === 1 ? "Object" : `${objects.count} objects`}</dt>
          <dd class="names">
            {objects.names.join(", ")}
            {objects.count > objects.names.length && ` and ${objects.count - objects.names.length} more`}
          </dd>
        </>
      )}
      {place !== undefined && (
        <>
          <dt>Place</dt>
          <dd class="id">{place}</dd>
        </>
      )}
    </dl>
  );
}
