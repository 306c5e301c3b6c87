import { useState } from "preact/hooks";
import type { z } from "zod";
import type { Explanation } from "../../../observe/explanation.ts";
import type { functionsAnswerSchema } from "../../schemas.ts";
import { useData } from "../api.tsx";
import { Ready, sentence, Table, When } from "../parts.tsx";
import { functionHref, navigate, url } from "../route.tsx";

export function ExplainPage() {
  const { searchParams } = url.value;
  const of = (name: string) => searchParams.get(name) ?? "";
  // Without a function, all are asked.
  const isAsked = of("name") !== "";
  const isValid =
    /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?$/.test(of("namespace")) &&
    /^(?!\.{1,2}$)[^/%]{1,1024}$/.test(of("name"));
  const [asked, setAsked] = useState({ function: of("function"), namespace: of("namespace"), name: of("name") });
  const functions = useData<z.infer<typeof functionsAnswerSchema>>("/api/functions", ["functions"]);
  const names = functions.data?.functions.map(({ name }) => name) ?? [];
  const set = (name: keyof typeof asked) => (event: Event) =>
    setAsked({ ...asked, [name]: (event.currentTarget as HTMLInputElement).value });
  const submit = (event: Event) => {
    event.preventDefault();
    const { namespace, name } = asked;
    navigate(`/explain?${new URLSearchParams({ ...asked, namespace: namespace.trim(), name: name.trim() })}`);
  };
  return (
    <>
      <h1>Explain</h1>
      <p class="quiet">Why did a function's handler run for an object, or not? Name the object.</p>
      <form class="filters" onSubmit={submit}>
        <label>
          <span>Function</span>
          <select value={asked.function} onChange={set("function")}>
            <option value="" selected={asked.function === ""}>
              all
            </option>
            {names.map((name) => (
              <option key={name} value={name} selected={name === asked.function}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Namespace</span>
          <input value={asked.namespace} onInput={set("namespace")} placeholder="none" autocomplete="off" />
        </label>
        <label>
          <span>Name</span>
          <input value={asked.name} onInput={set("name")} required autocomplete="off" />
        </label>
        <button type="submit" class="primary">
          Explain
        </button>
      </form>
      {isAsked && !isValid && (
        <p class="notice bad" role="alert">
          This is not the name of an object. A name has neither “/” nor “%”. A namespace has small letters, digits and
          “-”, at most 63.
        </p>
      )}
      {isAsked &&
        isValid &&
        (of("function") === "" ? names.slice(0, mostFunctions) : [of("function")]).map((name) => (
          <FunctionAnswer
            key={`${name} ${of("namespace")}/${of("name")}`}
            name={name}
            namespace={of("namespace")}
            object={of("name")}
          />
        ))}
      {isAsked && of("function") === "" && names.length > mostFunctions && (
        <p class="notice">These are the first {mostFunctions} functions. Choose another one above.</p>
      )}
    </>
  );
}

/** Functions that are asked at once. Each answer reads the object from the API server. */
const mostFunctions = 20;

function FunctionAnswer({ name, namespace, object }: { name: string; namespace: string; object: string }) {
  const query = new URLSearchParams({ namespace, name: object });
  const path = `/api/explain/${encodeURIComponent(name)}?${query}`;
  const loaded = useData<Explanation>(path, ["runs", "functions"]);
  return (
    <section aria-label={`Answer of ${name}`}>
      <h2>
        <a href={functionHref(name)}>{name}</a>
      </h2>
      <Ready of={loaded}>
        {({ triggers, elsewhere, function: { message } }) => (
          <>
            {elsewhere !== undefined && <p class="notice warn">This is not of all shards: {elsewhere}.</p>}
            {triggers.length === 0 ? (
              <p class="notice warn">The function is not loaded{message === undefined ? "" : `: ${message}`}.</p>
            ) : (
              triggers.map((trigger) => <Trigger key={trigger.trigger} of={trigger} />)
            )}
          </>
        )}
      </Ready>
    </section>
  );
}

const signs = { yes: ["good", "passes"], no: ["warn", "does not pass"], unknown: ["", "unknown"] } as const;

function Trigger({ of: { trigger, kind, why, next, checks, filtered } }: { of: Explanation["triggers"][number] }) {
  return (
    <section>
      <h3>
        {trigger}: {kind}
      </h3>
      <p class="answer">{sentence(why)}</p>
      {next !== undefined && <p>The next event: {next}.</p>}
      <Table caption={`Checks of ${trigger}`} heads={["Check", "Result", "Why"]}>
        {checks.map((check) => (
          <tr key={check.name}>
            <th scope="row">{check.name}</th>
            <td>
              <span class={`badge ${signs[check.passes][0]}`}>{signs[check.passes][1]}</span>
            </td>
            <td class="text">{check.says}</td>
          </tr>
        ))}
      </Table>
      {filtered.length > 0 && (
        <details>
          <summary>Its last filtered events</summary>
          <ul>
            {filtered.map((event) => (
              <li key={`${event.at} ${event.resourceVersion}`}>
                <When at={event.at} /> {event.type} at {event.resourceVersion}: {event.because}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
