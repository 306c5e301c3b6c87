import { useEffect, useRef, useState } from "preact/hooks";
import type { DeadLetterDetail, DeadLetterRow } from "../../../observe/dead-letter.ts";
import { post, useData } from "../api.tsx";
import { act, Code, Confirm, Filter, Ready, Table, When, wide, wideNumber } from "../parts.tsx";
import { letterCount, replay } from "../replay-all.tsx";
import { Denied, deniedId, type Rights, useRights } from "../rights.tsx";
import { functionHref, runHref, setQuery, url } from "../route.tsx";

export function DeadLettersPage() {
  const { searchParams } = url.value;
  const name = searchParams.get("function");
  const shown = searchParams.get("show");
  const path = name === null ? "/api/dead-letters" : `/api/dead-letters?function=${encodeURIComponent(name)}`;
  const loaded = useData<DeadLetterRow[]>(path, ["dead-letters"]);
  const rights = useRights(name ?? undefined);
  return (
    <>
      <h1>Dead letters</h1>
      <p class="quiet">
        {name === null ? "Events that were given up. " : `Events of ${name} that were given up. `}
        {name !== null && <a href="/dead-letters">Show those of all functions</a>}
      </p>
      {shown !== null && <Letter key={shown} id={shown} />}
      <Ready of={loaded}>
        {(letters) =>
          letters.length === 0 ? (
            <p class="notice good">No dead letters: no event was given up.</p>
          ) : (
            <LetterTable letters={letters} rights={rights} />
          )
        }
      </Ready>
    </>
  );
}

type Action = "replay" | "drop";

async function drop(ids: readonly string[], reason: string): Promise<string> {
  await post("/api/dead-letters/drop", { ids }, reason);
  return `${letterCount(ids.length)} ${ids.length === 1 ? "is" : "are"} dropped`;
}

function LetterTable({ letters, rights }: { letters: readonly DeadLetterRow[]; rights: Rights }) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<Action>();
  const [shownCount, setShownCount] = useState(pageSize);
  const text = url.value.searchParams.get("text") ?? "";
  // The newest first.
  const matching = letters.filter((letter) => textOf(letter).includes(text.trim().toLowerCase())).reverse();
  const isAllChosen = matching.length > 0 && matching.every(({ id }) => selected.has(id));
  const chosen = letters.filter(({ id }) => selected.has(id));
  const empty = chosen.filter(({ bodyDropped }) => bodyDropped).length;
  const toggle = (id: string) =>
    setSelected(new Set(selected.has(id) ? [...selected].filter((each) => each !== id) : [...selected, id]));
  const run = (action: Action, reason: string) => {
    setAsked(undefined);
    void act(async () => {
      const ids = chosen.map(({ id }) => id);
      const said =
        action === "replay"
          ? await replay(ids, [...new Set(chosen.map((letter) => letter.function))], reason)
          : await drop(ids, reason);
      setSelected(new Set());
      return said;
    });
  };
  return (
    <>
      <div class="filters">
        <Filter label="Object or error contains" name="text" value={text} onChange={setQuery} />
      </div>
      <p class="actions">
        <button
          type="button"
          disabled={matching.length === 0}
          onClick={() => setSelected(isAllChosen ? new Set() : new Set(matching.map(({ id }) => id)))}
        >
          {isAllChosen ? "Select none" : `Select all ${matching.length}`}
        </button>
        <button
          type="button"
          class="primary"
          disabled={chosen.length === 0 || empty > 0 || !rights.mayWrite}
          aria-describedby={deniedId}
          onClick={() => setAsked("replay")}
        >
          Replay
        </button>
        <button
          type="button"
          class="danger"
          disabled={chosen.length === 0 || !rights.mayWrite}
          aria-describedby={deniedId}
          onClick={() => setAsked("drop")}
        >
          Drop
        </button>
        <span class="quiet">
          {chosen.length === 0 ? "Select dead letters first." : `${chosen.length} selected.`}
          {empty > 0 && ` Of ${empty} the body is gone: they cannot be replayed.`}
        </span>
        <Denied of={rights} />
      </p>
      {asked !== undefined && (
        <Question
          action={asked}
          chosen={chosen}
          onYes={(reason) => run(asked, reason)}
          onNo={() => setAsked(undefined)}
        />
      )}
      <Table
        caption="Dead letters"
        heads={["Select", "Function", "Event", wideNumber("Attempts"), wide("Failed"), wide("Error"), "Body"]}
      >
        {matching.slice(0, shownCount).map((letter) => (
          <tr key={letter.id}>
            <td>
              <input
                type="checkbox"
                aria-label={`Select dead letter ${letter.id}`}
                checked={selected.has(letter.id)}
                onChange={() => toggle(letter.id)}
              />
            </td>
            <td>
              <a href={functionHref(letter.function)}>{letter.function}</a>
            </td>
            <td>
              <a href={runHref(letter.function, letter.eventId)}>
                {letter.type} {letter.kind} {letter.namespace ? `${letter.namespace}/` : ""}
                {letter.name}
              </a>
            </td>
            <td class="number wide">{letter.attempts}</td>
            <td class="wide">
              <When at={letter.failedAt} />
            </td>
            <td class="wide text" title={letter.error.message}>
              {letter.error.code ?? letter.error.name}: {letter.error.message.split("\n", 1)[0]}
            </td>
            <td>
              {letter.bodyDropped ? (
                "gone"
              ) : (
                <button
                  type="button"
                  class="plain"
                  onClick={() => setQuery({ show: letter.id })}
                  aria-label={`Show dead letter ${letter.id}`}
                >
                  Show
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {matching.length > shownCount && (
        <p class="actions">
          <button type="button" onClick={() => setShownCount(shownCount + pageSize)}>
            Show older
          </button>
          <span class="quiet">
            {shownCount} of {matching.length} are shown.
          </span>
        </p>
      )}
    </>
  );
}

/** Rows that are shown at first, and added with each click. */
const pageSize = 100;

/** The text of a dead letter in which the filter looks. */
const textOf = ({ type, kind, namespace, name, error }: DeadLetterRow): string =>
  `${type} ${kind} ${namespace === "" ? "" : `${namespace}/`}${name} ${error.code ?? error.name}: ${error.message}`.toLowerCase();

function Question({
  action,
  chosen,
  onYes,
  onNo,
}: {
  action: Action;
  chosen: readonly DeadLetterRow[];
  onYes: (reason: string) => void;
  onNo: () => void;
}) {
  const names = [...new Set(chosen.map((letter) => letter.function))].sort().join(", ");
  const count = letterCount(chosen.length);
  if (action === "replay") {
    return (
      <Confirm title={`Replay ${count}?`} yes={`Replay ${count}`} onYes={onYes} onNo={onNo}>
        <p>
          The handler of {names} runs again with each event as it was. What fails again becomes a dead letter again.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm title={`Drop ${count}?`} yes={`Drop ${count}`} isDangerous onYes={onYes} onNo={onNo}>
      <p>They are deleted with their bodies. The handler of {names} never sees these events. This cannot be undone.</p>
    </Confirm>
  );
}

function Letter({ id }: { id: string }) {
  const loaded = useData<DeadLetterDetail>(`/api/dead-letters/${encodeURIComponent(id)}`, []);
  const card = useRef<HTMLElement>(null);
  // It opens above the table, and its row may be far below.
  useEffect(() => {
    card.current?.scrollIntoView({ block: "nearest" });
    card.current?.focus({ preventScroll: true });
  }, []);
  return (
    <section class="card" aria-labelledby="letter" ref={card} tabIndex={-1}>
      <h2 id="letter">Dead letter {id}</h2>
      <Ready of={loaded}>
        {({ error, object, oldObject }) => (
          <>
            <p class="message">
              <strong>{error.code ?? error.name}</strong>: {error.message}
            </p>
            {object !== undefined && <Code label="Object">{JSON.stringify(object, null, 2)}</Code>}
            {oldObject !== undefined && (
              <details>
                <summary>The object before</summary>
                <Code label="The object before">{JSON.stringify(oldObject, null, 2)}</Code>
              </details>
            )}
          </>
        )}
      </Ready>
      <p class="actions">
        <button type="button" onClick={() => setQuery({ show: "" })}>
          Close
        </button>
      </p>
    </section>
  );
}
