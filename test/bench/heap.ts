import { readFile } from "node:fs/promises";
import { until } from "../tools/until.ts";

/** Makes Node open its inspector on a free port, which its log names. */
export const inspectFlag = "--inspect=127.0.0.1:0";

/** The bytes of objects and buffers that a process started with `inspectFlag` holds after a garbage collection. */
export async function heldBytes(logFile: string): Promise<number> {
  const url = await until("the inspector listens", 10_000, async () =>
    /Debugger listening on (ws:\S+)/.exec(await readFile(logFile, "utf8"))?.at(1),
  );
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const ask = (method: string, params: object = {}) =>
    new Promise<{ result: { result?: { value?: number } } }>((resolve) => {
      socket.onmessage = ({ data }) => resolve(JSON.parse(String(data)));
      socket.send(JSON.stringify({ id: 1, method, params }));
    });
  await ask("HeapProfiler.collectGarbage");
  const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
  const { result } = await ask("Runtime.evaluate", { expression, returnByValue: true });
  socket.close();
  return result.result?.value ?? Number.NaN;
}
