import { request } from "undici";
import { type Clock, pause, type Timer } from "../../base/clock.ts";
import { systemReason } from "../../base/wording.ts";
import type { Logger } from "../log.ts";
import type { TraceSettings } from "./settings.ts";

/** Spans that wait, at most. */
const mostWaiting = 4096;
/** Spans of one request. */
const mostSent = 512;
/** Milliseconds from a span to the request that sends it, unless enough wait before. */
const sendMs = 1_000;
/** Milliseconds until a batch that the collector did not take is sent again; then it is dropped. */
const againMs = [1_000, 4_000];
/** The same, when the collector asks for a longer time. */
const mostAgainMs = 30_000;
/** Milliseconds that the end waits for the collector. */
const closeMs = 2_000;
/** Characters of one attribute, or of a failure. */
export const mostText = 1_000;
/** Statuses of OTLP/HTTP after which a request may be repeated. */
const repeatable = new Set([429, 502, 503, 504]);

/** A span that has ended. */
export interface EndedSpan {
  /** 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  readonly parent?: string | undefined;
  readonly name: string;
  readonly kind: keyof typeof kinds;
  /** In epoch milliseconds. */
  readonly begin: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Why it failed. Default: it did not. */
  readonly failure?: string | undefined;
}

/** The numbers of `SpanKind` in OpenTelemetry's protocol. */
const kinds = { internal: 1, client: 3, consumer: 5 } as const;

/** Counts spans by their result, for a metric. */
type SpansEnded = (result: "sent" | "dropped" | "failed", count: number) => void;

interface ExporterParts {
  readonly settings: TraceSettings;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly ended?: SpansEnded | undefined;
}

/**
 * Sends spans to a collector as OTLP/HTTP in JSON, in batches. Nothing waits for it: a span beyond the room is dropped and counted, and a
 * batch that the collector does not take is sent three times.
 */
export class SpanExporter {
  private readonly parts: ExporterParts;
  private waiting: EndedSpan[] = [];
  private timer: Timer | undefined;
  private sending: Promise<void> | undefined;
  private readonly closing = new AbortController();
  /** The failure that was logged last. */
  private trouble: string | undefined;

  constructor(parts: ExporterParts) {
    this.parts = parts;
  }

  add(span: EndedSpan): void {
    if (this.waiting.length >= mostWaiting || this.closing.signal.aborted) {
      this.parts.ended?.("dropped", 1);
      return;
    }
    this.waiting.push(span);
    if (this.sending) return;
    if (this.waiting.length >= mostSent) this.begin();
    else this.timer ??= this.parts.clock.after(sendMs, () => this.begin(), { unref: true });
  }

  /** Sends the spans that wait, within two seconds. Never rejects. */
  async close(): Promise<void> {
    const late = new AbortController();
    const { clock, ended } = this.parts;
    const tooLate = pause(clock, closeMs, late.signal).catch(() => undefined);
    this.begin();
    await Promise.race([this.sending, tooLate]);
    late.abort();
    this.closing.abort();
    if (this.waiting.length > 0) ended?.("dropped", this.waiting.length);
    this.waiting = [];
  }

  private begin(): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.sending ??= this.sendAll().finally(() => {
      this.sending = undefined;
    });
  }

  private async sendAll(): Promise<void> {
    while (this.waiting.length > 0 && !this.closing.signal.aborted) {
      const spans = this.waiting.splice(0, mostSent);
      const isSent = await this.send(JSON.stringify(exportRequest(this.parts.settings.resource, spans)));
      this.parts.ended?.(isSent ? "sent" : "failed", spans.length);
    }
  }

  /** Returns whether the collector took it. */
  private async send(body: string): Promise<boolean> {
    for (const wait of [...againMs, undefined]) {
      const { trouble, askedMs = 0, isFinal } = await this.post(body);
      if (trouble === undefined) {
        if (this.trouble !== undefined) this.parts.log.info({}, "the collector takes traces again");
        this.trouble = undefined;
        return true;
      }
      if (trouble !== this.trouble) {
        this.parts.log.warn({ collector: new URL(this.parts.settings.url).host, error: trouble }, "traces not sent");
      }
      this.trouble = trouble;
      if (isFinal || wait === undefined) return false;
      const ms = Math.max(wait, Math.min(askedMs, mostAgainMs));
      if (
        !(await pause(this.parts.clock, ms, this.closing.signal).then(
          () => true,
          () => false,
        ))
      )
        return false;
    }
    return false;
  }

  private async post(body: string): Promise<{ trouble?: string; askedMs?: number; isFinal?: boolean }> {
    const { url, headers, timeoutMs } = this.parts.settings;
    try {
      const response = await request(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: this.closing.signal,
      });
      await response.body.dump();
      const { statusCode: status } = response;
      if (status >= 200 && status < 300) return {};
      const asked = Number(response.headers["retry-after"]) * 1000;
      const isFinal = !repeatable.has(status);
      return { trouble: `the collector answered ${status}`, isFinal, ...(asked > 0 && { askedMs: asked }) };
    } catch (error) {
      return { trouble: systemReason(error) };
    }
  }
}

/** Returns an `ExportTraceServiceRequest` in the JSON mapping of OTLP: ids in hexadecimal digits, 64-bit numbers as text. */
function exportRequest(resource: TraceSettings["resource"], spans: readonly EndedSpan[]): object {
  const scope = { name: "watchfire", version: resource["service.version"] };
  const scopeSpans = [{ scope, spans: spans.map(spanOf) }];
  return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans }] };
}

const spanOf = ({ trace, id, parent, name, kind, begin, end, attributes, failure }: EndedSpan) => ({
  traceId: trace,
  spanId: id,
  ...(parent !== undefined && { parentSpanId: parent }),
  name,
  kind: kinds[kind],
  startTimeUnixNano: nanoseconds(begin),
  endTimeUnixNano: nanoseconds(Math.max(begin, end)),
  attributes: attributesOf(attributes),
  // A handler that returned is no proof that all is well, so its status stays unset.
  status: failure === undefined ? {} : { code: 2, message: failure.slice(0, mostText) },
});

/** Epoch milliseconds have three exact decimals. */
const nanoseconds = (ms: number): string => `${Math.round(ms * 1000)}000`;

const attributesOf = (attributes: EndedSpan["attributes"]) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: anyValue(value) }]));

function anyValue(value: string | number | boolean): object {
  if (typeof value === "string") return { stringValue: value.slice(0, mostText) };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
