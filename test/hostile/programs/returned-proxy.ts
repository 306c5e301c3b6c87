// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
const loop = () => {
  for (;;) Math.sqrt(2);
};
export default () => new Proxy({}, { get: loop as never, has: loop as never, ownKeys: loop as never });
