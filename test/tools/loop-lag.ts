/** Milliseconds between two looks at the event loop. */
export const lookMs = 5;

/**
 * The longest that work kept this thread from its event loop, until `stop`; milliseconds. In CPU time of the thread: what the
 * machine does besides does not count.
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
