import { z } from "zod";
import { version } from "../base/version.ts";
import { failureSchema } from "../observe/failure.ts";
import { type ApiRoute, apiRoutes } from "./api-routes.ts";

const jsonOf = (schema: z.ZodType, io: "input" | "output" = "output") => {
  const { $schema, ...rest } = z.toJSONSchema(schema, { unrepresentable: "any", io });
  return { "application/json": { schema: rest } };
};

/** Describes `/api` in OpenAPI 3.1, made from the schemas of its questions and answers. `isDev`: with the routes of `watchfire dev`. */
export function openApi(isDev: boolean): object {
  const paths: Record<string, Record<string, object>> = {
    "/api/events": {
      get: {
        summary: "Server-sent events that name what changed: functions, runs, sources, dead-letters",
        responses: { 200: { description: "A stream", content: { "text/event-stream": {} } } },
      },
    },
  };
  for (const route of apiRoutes) {
    if (route.isDev && !isDev) continue;
    const path = `/api${route.path}`;
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Watchfire", version, description: "What the console and the commands ask a runtime." },
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "The data folder's token" },
        session: { type: "apiKey", in: "header", name: "X-Watchfire-Proof", description: "With the session's cookie" },
      },
    },
    security: [{ token: [] }, { session: [] }],
  };
}

function operationOf({ summary, path, query, body, answer }: ApiRoute): object {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const inPath = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  const inQuery = Object.entries(query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    required: !schema.safeParse(undefined).success,
    schema: jsonOf(schema as z.ZodType, "input")["application/json"].schema,
  }));
  return {
    summary,
    parameters: [...inPath, ...inQuery],
    ...(body && { requestBody: { required: true, content: jsonOf(body, "input") } }),
    responses: {
      200: { description: "The answer", content: jsonOf(answer) },
      default: { description: "A failure", content: jsonOf(failureSchema) },
    },
  };
}
