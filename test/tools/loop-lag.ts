/** Interval of the measurements of the event loop, in milliseconds. */
export const lookMs = 5;

/**
 * Measures the longest time that work kept this thread from its event loop, until `stop`, in milliseconds of the thread's CPU
 * time, so that other work of the machine does not count.
 */
export function watchLoopLag(): { stop(): number } {
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let worst = 0;
  let at = cpuMs();
  const timer = setInterval(() => {
    worst = Math.max(worst, cpuMs() - at);
    at = cpuMs();
  }, lookMs);
  return {
    stop: () => {
      clearInterval(timer);
      return worst;
    },
  };
}
