import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { declaration } from "../../runtime/types/declaration.ts";
import { readDefinitions } from "../../runtime/types/definition.ts";
import { compilerFaults, typedProject } from "../tools/typed-project.ts";

const template = join(import.meta.dirname, "../../runtime/cli/new-project/templates/controller");

/** A handler in which the compiler must refuse exactly the lines that end in `// wrong`. */
const handler = `
import { defineHandler, type Triggers } from "@watchfire/sdk";
import type { V1Greeting } from "../types/greetings.example.com.ts";
import type { V1Pod } from "@watchfire/sdk/kubernetes";

export default defineHandler<Triggers<{ greetings: V1Greeting; pods: V1Pod }>>(async (event, { kube }) => {
  const ref = { apiVersion: "example.com/v1", kind: "Greeting", name: "a", namespace: "b" } as const;
  const greeting = await kube.get(ref);
  const message: string = greeting.spec.message;
  const size: string = greeting.spec.size; // wrong
  const uid: string = greeting.metadata.uid;
  const { items } = await kube.list({ apiVersion: "example.com/v1", kind: "Greeting" });
  const ready: boolean | undefined = items[0]?.status?.ready;
  const metadata = { name: "a", namespace: "b" };
  await kube.create({ apiVersion: "example.com/v1", kind: "Greeting", metadata, spec: { message } });
  await kube.create({ apiVersion: "example.com/v1", kind: "Greeting", metadata, spec: { message: 3 } }); // wrong
  await kube.apply({ apiVersion: "example.com/v1", kind: "Greeting", metadata, spec: { message, massage: "" } }); // wrong
  if (event.trigger === "greetings") return event.object.spec.message;
  return event.object.spec.message; // wrong
});
`;

it("types made of a definition's file are those that get, list, create and triggers take, and a wrong field is an error", async () => {
  const [definition] = readDefinitions(join(template, "functions"));
  if (!definition) throw new Error("the template has no definition");
  const folder = typedProject({
    "types/greetings.example.com.ts": await declaration(definition),
    "functions/handler.ts": handler,
  });
  const wrong = handler.split("\n").flatMap((line, index) => (line.endsWith("// wrong") ? [index + 1] : []));
  const lines = compilerFaults(folder).flatMap((line) => /^functions\/handler\.ts\((\d+),/.exec(line)?.[1] ?? []);
  expect([...new Set(lines)].map(Number)).toEqual(wrong);
});

it("the template's types are those of its definition", async () => {
  for (const definition of readDefinitions(join(template, "functions"))) {
    const file = join(template, "types", `${definition.metadata.name}.ts`);
    expect(readFileSync(file, "utf8")).toBe(await declaration(definition));
  }
});
