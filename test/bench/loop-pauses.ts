// Imported into a measured process: writes each pause of its event loop as a line into the file that LOOP_PAUSES names.
// LOOP_PAUSES_FROM: minimum length of a pause in milliseconds; default 50.
import { appendFileSync } from "node:fs";

const file = process.env.LOOP_PAUSES ?? "";
const lookMs = 5;
const worthMs = Number(process.env.LOOP_PAUSES_FROM ?? 50);
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};
let last = { at: performance.now(), cpu: cpuMs() };
setInterval(() => {
  const now = { at: performance.now(), cpu: cpuMs() };
  const ms = now.at - last.at - lookMs;
  if (ms > worthMs)
    appendFileSync(file, `${JSON.stringify({ at: Math.round(last.at), ms, cpuMs: now.cpu - last.cpu })}\n`);
  last = now;
}, lookMs).unref();
