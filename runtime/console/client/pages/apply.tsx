import { useState } from "preact/hooks";
import type { z } from "zod";
import type { applyAnswerSchema, devAnswerSchema } from "../../schemas.ts";
import { post, useData } from "../api.tsx";
import { ActionButton, Code, Filter, Ready } from "../parts.tsx";
import { setQuery, url } from "../route.tsx";

type DevAnswer = z.infer<typeof devAnswerSchema>;

const example = `apiVersion: v1
kind: ConfigMap
metadata:
  name: example
  namespace: default
`;

/** Applies an object to the embedded cluster: a sample of a function, or one that is typed. `watchfire dev` alone has this page. */
export function ApplyPage() {
  const loaded = useData<DevAnswer>("/api/dev", ["functions"]);
  return (
    <>
      <h1>Apply</h1>
      <p class="quiet">
        Applies objects to the embedded cluster, as <code>kubectl apply</code> does. Each gets an annotation with the
        time, which makes it a change that functions receive.
      </p>
      <Ready of={loaded}>
        {({ samples }) =>
          samples === undefined ? (
            <p class="notice warn">The cluster is one of yours, or this is a dry run: apply objects with kubectl.</p>
          ) : (
            <Form samples={samples} />
          )
        }
      </Ready>
    </>
  );
}

function Form({ samples }: { samples: NonNullable<DevAnswer["samples"]> }) {
  const chosen = url.value.searchParams.get("sample") ?? "";
  const given = samples.find(({ file }) => file === chosen)?.text ?? example;
  const [edited, setEdited] = useState<{ readonly of: string; readonly text: string }>();
  const text = edited?.of === chosen ? edited.text : given;
  const apply = async () => {
    const { applied, warnings } = await post<z.infer<typeof applyAnswerSchema>>("/api/dev/apply", { text });
    return [`${applied.join(", ")} ${applied.length === 1 ? "is" : "are"} applied`, ...warnings].join("; ");
  };
  return (
    <form class="apply" onSubmit={(event) => event.preventDefault()}>
      <div class="filters">
        <Filter
          label="Sample"
          name="sample"
          value={chosen}
          options={[["", "an object of yours"], ...samples.map(({ file }) => [file, file] as const)]}
          onChange={setQuery}
        />
      </div>
      <label>
        <span>Objects in YAML</span>
        <textarea
          rows={18}
          value={text}
          spellcheck={false}
          onInput={(event) => setEdited({ of: chosen, text: event.currentTarget.value })}
        />
      </label>
      <p class="actions">
        <ActionButton class="primary" action={apply}>
          Apply
        </ActionButton>
      </p>
    </form>
  );
}

/** The faults of types, as they stand in the terminal. */
export function TypeFaults() {
  const { data } = useData<DevAnswer>("/api/dev", ["functions"], 2_000);
  if (!data || data.faults.length === 0) return null;
  return (
    <section aria-labelledby="type-faults">
      <h2 id="type-faults">Type errors</h2>
      <p class="quiet">The code runs all the same.</p>
      {data.faults.map(({ function: name, text }) => (
        <Code key={text} label={`Type error of ${name ?? "the folder"}`}>
          {text}
        </Code>
      ))}
    </section>
  );
}
