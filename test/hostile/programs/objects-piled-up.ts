// ends with: WF_SANDBOX_MEMORY WF_SANDBOX_CPU_BUDGET
// within: 4000 ms
export default () => {
  const pile: unknown[] = [];
  for (;;) pile.push({ a: [1, 2, 3], b: `x${pile.length}` });
};
