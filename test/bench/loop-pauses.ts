// Imported into a measured process: writes each pause of its event loop to the file that LOOP_PAUSES names, a line each.
// LOOP_PAUSES_FROM: pauses of so many milliseconds or more; 50 unless given.
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
