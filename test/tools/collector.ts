import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { z } from "zod";

const attribute = z.strictObject({
  key: z.string().min(1),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
    z.strictObject({ doubleValue: z.number() }),
    z.strictObject({ boolValue: z.boolean() }),
  ]),
});
const nanoseconds = z.string().regex(/^\d{19}$/);
const id = (digits: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`));
const spanSchema = z.strictObject({
  traceId: id(32),
  spanId: id(16),
  parentSpanId: id(16).optional(),
  name: z.string().min(1),
  kind: z.literal([1, 2, 3, 4, 5]),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes: z.array(attribute),
  status: z.strictObject({ code: z.literal([0, 1, 2]).optional(), message: z.string().optional() }),
});
/** `ExportTraceServiceRequest` in the JSON mapping of OTLP, as far as a sender of these fields may use it. */
const requestSchema = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: z.array(attribute) }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }),
          spans: z.array(spanSchema),
        }),
      ),
    }),
  ),
});

/** A span as it arrived, with its attributes by name. Numbers of 64 bits are text. */
export type ReceivedSpan = ReturnType<typeof readSpan>;

const valuesOf = (attributes: z.infer<typeof attribute>[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const readSpan = (span: z.infer<typeof spanSchema>) => ({
  ...span,
  attributes: valuesOf(span.attributes),
  begin: BigInt(span.startTimeUnixNano),
  end: BigInt(span.endTimeUnixNano),
});

/**
 * An OTLP/HTTP receiver on a real socket. A request that is not one of OTLP's JSON mapping is answered with 400.
 * @param answer returns the status with which a request is answered, and its headers. Default: 200
 */
export async function startCollector(
  answer: (request: number) => { readonly status: number; readonly headers?: Record<string, string> } = () => ({
    status: 200,
  }),
) {
  const spans: ReceivedSpan[] = [];
  const requests: { url: string; headers: IncomingHttpHeaders; text: string; resource: Record<string, unknown> }[] = [];
  const refused: unknown[] = [];
  let number = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const { status, headers = {} } = answer(++number);
    const read = requestSchema.safeParse(JSON.parse(text));
    if (!read.success) refused.push(read.error.issues);
    else if (status === 200) {
      for (const { resource, scopeSpans } of read.data.resourceSpans) {
        requests.push({
          url: request.url ?? "",
          headers: request.headers,
          text,
          resource: valuesOf(resource.attributes),
        });
        spans.push(...scopeSpans.flatMap((each) => each.spans.map(readSpan)));
      }
    }
    response.writeHead(read.success ? status : 400, { "content-type": "application/json", ...headers }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, spans, requests, refused, asked: () => number };
}
