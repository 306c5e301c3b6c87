import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../runtime/base/clock.ts";
import { type EndedSpan, SpanExporter } from "../../../runtime/observe/traces/exporter.ts";
import { readTraceSettings } from "../../../runtime/observe/traces/settings.ts";
import { startCollector } from "../../tools/collector.ts";
import { ImpatientClock } from "../../tools/impatient-clock.ts";
import { until } from "../../tools/until.ts";

const span = (number = 1): EndedSpan => ({
  trace: "4bf92f3577b34da6a3ce929d0e0e4736",
  id: number.toString(16).padStart(16, "0"),
  name: "attempt",
  kind: "internal",
  begin: 1_767_312_000_000.25,
  end: 1_767_312_000_012.5,
  attributes: { flag: true, whole: 3, part: 0.5, absent: undefined },
});

function exporterTo(url: string, variables: Record<string, string> = {}) {
  const settings = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables });
  if (!settings) throw new Error("no settings");
  const counts: Record<string, number> = {};
  const lines: { msg: string; error?: string }[] = [];
  const clock = new ImpatientClock();
  const exporter = new SpanExporter({
    settings,
    clock,
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line)) }),
    ended: (result, count) => {
      counts[result] = (counts[result] ?? 0) + count;
    },
  });
  onTestFinished(() => exporter.close());
  const ended = (result: string, count: number) =>
    until(`${count} are ${result}`, 5_000, async () => counts[result] === count);
  return { exporter, counts, lines, clock, ended };
}

test("times keep their microseconds, and values their types", async () => {
  const collector = await startCollector();
  const { exporter } = exporterTo(collector.url, { OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20b,other=c" });
  exporter.add(span());
  await exporter.close();
  expect(collector.refused).toEqual([]);
  expect(collector.spans).toMatchObject([
    {
      startTimeUnixNano: "1767312000000250000",
      endTimeUnixNano: "1767312000012500000",
      attributes: { flag: true, whole: "3", part: 0.5 },
    },
  ]);
  expect(collector.requests[0]?.headers).toMatchObject({ "api-key": "a b", other: "c" });
});

test("a batch that the collector is too busy for is sent again", async () => {
  const collector = await startCollector((request) => ({ status: request === 1 ? 503 : 200 }));
  const { exporter, lines, clock, ended } = exporterTo(collector.url);
  exporter.add(span());
  await until("it is sent again", 5_000, async () => {
    clock.cutShort(500, 2_000);
    return collector.asked() === 2;
  });
  await ended("sent", 1);
  expect(lines.map(({ msg, error }) => [msg, error])).toEqual([
    ["traces not sent", "the collector answered 503"],
    ["the collector takes traces again", undefined],
  ]);
});

test("a batch that the collector refuses is not sent again, and the next one is", async () => {
  const collector = await startCollector((request) => ({ status: request === 1 ? 401 : 200 }));
  const { exporter, clock, ended } = exporterTo(collector.url);
  exporter.add(span());
  clock.cutShort(500, 2_000);
  await ended("failed", 1);
  exporter.add(span(2));
  clock.cutShort(500, 2_000);
  await ended("sent", 1);
  expect(collector.asked()).toBe(2);
});

test("spans beyond the room are dropped while the collector is silent, and the end does not wait for it", async () => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { exporter, counts, clock } = exporterTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  // One batch is on its way.
  for (let number = 1; number <= 6_000; number++) exporter.add(span(number));
  expect(counts.dropped).toBe(6_000 - 512 - 4_096);
  const began = systemClock.monotonic();
  const closed = exporter.close();
  clock.cutShort(2_000, 2_001);
  await closed;
  expect(systemClock.monotonic() - began).toBeLessThan(1_500);
  expect(counts.dropped).toBe(6_000 - 512);
});
