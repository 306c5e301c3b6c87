// ends with: WF_SANDBOX_CPU_BUDGET
// within: 900 ms
const { console: out } = globalThis;

export default () => {
  const line = "x".repeat(1000);
  for (;;) out.log(line);
};
